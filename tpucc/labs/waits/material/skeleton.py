"""Lab 7: who must wait for whom. Write `synchronise`; helpers of your own are welcome in this file."""

PAGE = {{page}}  # rows of a page of the host link
ENGINES = {{engines}}


def synchronise(listing):
    """The waits of a listing, each as (before instruction, engine that waits, engines waited for). {{single_rule}}

    `listing[n]` is instruction n. It has `index`, which is n, `text`, `engine` (`engine.name` is one of `ENGINES`, or of an engine that
    touches no rows), and `reads` and `writes`: `reads.buffer` are rows of the unified buffer, `reads.accumulators` accumulators, each a
    NumPy array.

    This one makes every engine wait for all others before each instruction, which is right and slow.
    """
    waits, engines = [], [unit.name for unit in listing.machine.row_units]  # those of `ENGINES` that this listing's machine has
    for instruction in listing:
        engine = instruction.engine.name
        waits += [(instruction.index, engine, [other]) for other in engines if engine in engines and other != engine]
    return waits
