"""Detectors with one bug each: a student's programs show that they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from tpucc.labs.break_it.rules import ENGINES, Plain, PlainInstruction, Rule

Sums = set[int]
"""Rows of accumulators."""


Find = Callable[[Plain, Rule], set[int]]


class Detector(NamedTuple):
    """A detector, and what is wrong with it. `find` gives the numbers that it reports, of a program and the rule that it should know.

    `sees` is set where it is the rule on a program that it sees otherwise than it is: what it sees then.
    """

    bug: str
    find: Find
    sees: Callable[[Plain], Plain] | None = None


def _seeing(bug: str, change: Callable[[PlainInstruction], Mapping[str, object]]) -> Detector:
    """A detector that sees each instruction otherwise than it is: with the fields that `change` gives."""
    return _blind(bug, lambda program: _with(program, [{**each, **change(each)} for each in program["instructions"]]))


def _blind(bug: str, sees: Callable[[Plain], Plain]) -> Detector:
    return Detector(bug, lambda program, rule: set(rule.faults(sees(program))), sees)


def _with(program: Plain, instructions: Sequence[Mapping[str, object]]) -> Plain:
    """The program with other instructions."""
    return {**program, "instructions": cast(list[PlainInstruction], instructions)}


def _dense(rows: list[int]) -> list[int]:
    """The rows, and those between them."""
    return list(range(rows[0], rows[-1] + 1)) if rows else []


def _written_anywhere(program: Plain) -> Plain:
    """Reads of a row that some instruction writes are none."""
    written = {row for each in program["instructions"] for row in each["writes"]}
    return _with(program, [{**each, "reads": [row for row in each["reads"] if row not in written]} for each in program["instructions"]])


def _lost(program: Plain, after: Callable[[Sums, Sums, Sums], Sums]) -> set[int]:
    """The multiplies that begin a sum where one waits to be activated. `after` gives the rows whose sums wait, of those that waited before
    an instruction, those that it reads and those that it writes."""
    # lab 8 begin: find the instructions at fault
    waiting, found = Sums(), set[int]()
    for number, each in enumerate(program["instructions"]):
        added, written = set(each["sums_read"]), set(each["sums_written"])
        found |= {number} if (written - added) & waiting else set()
        waiting = after(waiting, added, written)
    return found
    # lab 8 end


NOTHING: Mapping[str, object] = {
    "name": "nop",
    **{rows: [] for rows in ("reads", "writes", "sums_read", "sums_written", "waits")},
    "tile": None,
    "switch": False,
}
"""What an instruction has that does nothing, but for its engine."""


def _remembers_the_last_multiply(program: Plain, _: Rule) -> set[int]:
    return _lost(program, lambda waiting, added, written: written or waiting - added)


def _forgets_after_a_fault(program: Plain, _: Rule) -> set[int]:
    def after(waiting: Sums, added: Sums, written: Sums) -> Sums:
        return (waiting | written) - ((written - added) & waiting) if written else waiting - added

    return _lost(program, after)


def _counts_below_zero(program: Plain, rule: Rule) -> set[int]:
    """A switch without a tile takes the next one that is asked for."""
    seen, owed = list(program["instructions"]), 0
    for number, each in enumerate(seen):
        if owed and each["tile"] is not None:
            seen[number], owed = {**each, "tile": None}, owed - 1
        owed += each["switch"] and number in rule.faults(_with(program, seen))
    return set(rule.faults(_with(program, seen)))


def _asks_for_a_tile_once(program: Plain) -> Plain:
    tiles = [each["tile"] for each in program["instructions"]]
    once = [None if tile in tiles[:number] else tile for number, tile in enumerate(tiles)]
    return _with(program, [{**each, "tile": tile} for each, tile in zip(program["instructions"], once, strict=True)])


def _reads_before_writes(program: Plain, rule: Rule) -> set[int]:
    """Looks for writes before reads and writes, and not for reads before writes."""

    def earlier(number: int) -> Plain:
        code = program["instructions"]
        before = [{**each, "reads": each["writes"], "sums_read": each["sums_written"]} for each in code[:number]]
        return _with(program, [*before, *code[number:]])

    return {number for number in rule.faults(program) if number in rule.faults(earlier(number))}


def _all_that_it_has_waited_for(program: Plain) -> Plain:
    """A wait for an engine has the engines, too, for which this one has waited at any time before."""
    met, seen = dict[str, set[str]](), list[Mapping[str, object]]()
    for each in program["instructions"]:
        waits = list[tuple[str, list[str]]]()
        for engine, others in each["waits"]:
            more = set(others).union(*(met.get(other, ()) for other in others)) - {engine}
            met[engine] = met.get(engine, set()) | more
            waits.append((engine, sorted(more)))
        seen.append({**each, "waits": waits})
    return _with(program, seen)


def _knows_later_waits(program: Plain, rule: Rule) -> set[int]:
    """What an engine has waited for since its last instruction comes with a wait for it: as if it had done something since."""
    seen, numbers, begun = list[Mapping[str, object]](), list[int](), set[str]()
    for number, each in enumerate(program["instructions"]):
        begun.add(each["engine"])
        seen += [each, *({**NOTHING, "engine": engine} for engine, _ in each["waits"] if engine in begun)]
        numbers += [number] * (len(seen) - len(numbers))
    return {numbers[place] for place in rule.faults(_with(program, seen))}


def _no_chains(program: Plain, rule: Rule) -> set[int]:
    """A wait for an engine says nothing of those that this one has waited for: each engine knows its own waits alone."""
    found, code = set[int](), program["instructions"]
    for engine in ENGINES:
        seen = _with(program, [{**each, "waits": [wait for wait in each["waits"] if wait[0] == engine]} for each in code])
        found |= {number for number in rule.faults(seen) if code[number]["engine"] == engine}
    return found


DETECTORS: Mapping[str, tuple[Detector, ...]] = {
    "unwritten": (
        _seeing("it looks at the first row that an instruction reads, not at the others", lambda i: {"reads": i["reads"][:1]}),
        _seeing("it thinks that only the host engine writes rows", lambda i: {"writes": i["writes"] if i["engine"] == "host" else []}),
        _seeing("it thinks that rows are read which lie between two that are", lambda i: {"reads": _dense(i["reads"])}),
        _blind("it asks whether a row is written anywhere in the program, not whether before", _written_anywhere),
        _seeing("it thinks that rows are written which lie between two that are", lambda i: {"writes": _dense(i["writes"])}),
        _seeing(
            "it takes an instruction's own writes for earlier ones", lambda i: {"reads": [r for r in i["reads"] if r not in i["writes"]]}
        ),
        _seeing("it reports a row once, and then takes it for written", lambda i: {"writes": i["writes"] + i["reads"]}),
    ),
    "lost": (
        _seeing(
            "it takes a multiply that accumulates for one that begins a sum",
            lambda i: {"sums_read": [] if i["sums_written"] else i["sums_read"]},
        ),
        _seeing(
            "it looks at the first accumulator row of a multiply, not at the others", lambda i: {"sums_written": i["sums_written"][:1]}
        ),
        _seeing(
            "it looks at the first accumulator row of an activate, not at the others",
            lambda i: {"sums_read": i["sums_read"] if i["sums_written"] else i["sums_read"][:1]},
        ),
        _seeing(
            "it thinks that a multiply that accumulates activates the sums that it reads",
            lambda i: {"sums_written": [] if i["sums_read"] else i["sums_written"]},
        ),
        _seeing(
            "it thinks that one activate activates all sums",
            lambda i: {"sums_read": list(range(64))} if i["sums_read"] and not i["sums_written"] else {},
        ),
        Detector("it remembers the sums of the last multiply only", _remembers_the_last_multiply),
        Detector("it forgets a row that it has reported", _forgets_after_a_fault),
    ),
    "fifo": (
        _blind("it takes any number of tiles for few enough", lambda program: {**program, "fifo": 10**9}),
        _blind("it allows one tile more than the FIFO holds", lambda program: {**program, "fifo": program["fifo"] + 1}),
        _seeing("it takes tile 0 for no tile", lambda i: {"tile": i["tile"] or None}),
        _seeing("it thinks that every multiply switches", lambda i: {"switch": bool(i["sums_written"])}),
        _blind("it counts a tile that is asked for again only once", _asks_for_a_tile_once),
        _seeing("it doesn't see that convolve switches", lambda i: {"switch": i["switch"] and i["name"] != "convolve"}),
        Detector("it lets a switch without a tile take the next one that is asked for", _counts_below_zero),
    ),
    "race": (
        _seeing("it doesn't look at accumulators", lambda _: {"sums_read": [], "sums_written": []}),
        _seeing(
            "it thinks that two reads of a row collide",
            lambda i: {"writes": sorted({*i["reads"], *i["writes"]})},
        ),
        _seeing(
            "it takes the engine that waits for the one that is waited for, and that one for the one that waits",
            lambda i: {"waits": [(other, [engine]) for engine, others in i["waits"] for other in others]},
        ),
        _blind("it thinks that a wait for an engine is one for all those, too, which that one has waited for", _all_that_it_has_waited_for),
        _seeing(
            "it thinks that the engine that is waited for waits too",
            lambda i: {"waits": i["waits"] + [(other, [engine]) for engine, others in i["waits"] for other in others]},
        ),
        Detector("it sees no collision where a row is overwritten that was read", _reads_before_writes),
        Detector("it thinks that a wait for an engine says nothing of those which that one has waited for", _no_chains),
        Detector("it takes what the engine that is waited for knows now, not what it knew when it began", _knows_later_waits),
    ),
}
"""By the name of the rule. The first `SHOWN` are in the public tests; each of these is the rule on what it sees."""
SHOWN = 4
