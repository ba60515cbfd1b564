"""Lab 6: what comes next. Write `order`; helpers of your own are welcome in this file."""

SUMS = {{sums}}  # how many sums may be open at one time; 0: as many as there is room for
TRANSFERS = "{{transfers}}"


def order(tiles):
    """The numbers of the instructions in their new order, each once.

    `tiles[n]` is instruction n. It has `index`, which is n, `text`, `engine` (`engine.name` is `HOST`, `MATRIX` or `ACTIVATION`), and
    `reads` and `writes`: `reads.buffer` are rows of buffers, `reads.accumulators` accumulators, each a NumPy array.
    `tiles.instructions["index"][n]` is its weight tile, or its parameter block, `tiles.instructions["group"][n]` its sum or -1.
    `tiles.target` is the machine.

    This one leaves them as they are, which is valid and slow.
    """
    return list(range(len(tiles)))
