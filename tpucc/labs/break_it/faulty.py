"""Detectors with one bug each: a student's programs show that they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tpucc.labs.break_it.rules import ENGINES, Plain, PlainInstruction, Rule

Sums = set[int]
"""Rows of accumulators."""


Find = Callable[[Plain, Rule], set[int]]
Change = Callable[[PlainInstruction], None]


class Detector(NamedTuple):
    """A detector, and what is wrong with it. `find` gives the numbers that it reports, of a program and the rule that it should know.

    `sees` is set where it is the rule on a program that it sees otherwise than it is: what it sees then.
    """

    bug: str
    find: Find
    sees: Callable[[Plain], Plain] | None = None


def _seeing(bug: str, change: Change) -> Detector:
    """A detector that sees each instruction otherwise than it is."""

    def sees(program: Plain) -> Plain:
        seen = _copy(program)
        for each in seen["instructions"]:
            change(each)
        return seen

    return _blind(bug, sees)


def _blind(bug: str, sees: Callable[[Plain], Plain]) -> Detector:
    return Detector(bug, lambda program, rule: set(rule.faults(sees(program))), sees)


def _copy(program: Plain) -> Plain:
    return Plain(fifo=program["fifo"], instructions=[each.copy() for each in program["instructions"]])


def _first_read(each: PlainInstruction) -> None:
    each["reads"] = each["reads"][:1]


def _dense_writes(each: PlainInstruction) -> None:
    if each["writes"]:
        each["writes"] = list(range(each["writes"][0], each["writes"][-1] + 1))


def _only_the_host_writes(each: PlainInstruction) -> None:
    if each["engine"] != "host":
        each["writes"] = []


def _no_own_reads(each: PlainInstruction) -> None:
    each["reads"] = [row for row in each["reads"] if row not in each["writes"]]


def _reads_write(each: PlainInstruction) -> None:
    each["writes"] = [*each["writes"], *each["reads"]]


def _adds_begin(each: PlainInstruction) -> None:
    if each["sums_written"]:
        each["sums_read"] = []


def _first_sum(each: PlainInstruction) -> None:
    if each["sums_written"]:
        each["sums_written"] = each["sums_written"][:1]


def _activates_all(each: PlainInstruction) -> None:
    if each["sums_read"] and not each["sums_written"]:
        each["sums_read"] = list(range(64))


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


def _remembers_the_last_multiply(program: Plain, _: Rule) -> set[int]:
    return _lost(program, lambda waiting, added, written: written or waiting - added)


def _forgets_after_a_fault(program: Plain, _: Rule) -> set[int]:
    def after(waiting: Sums, added: Sums, written: Sums) -> Sums:
        return (waiting | written) - ((written - added) & waiting) if written else waiting - added

    return _lost(program, after)


def _any_room(program: Plain) -> Plain:
    return {**program, "fifo": 10**9}


def _one_more_place(program: Plain) -> Plain:
    return {**program, "fifo": program["fifo"] + 1}


def _counts_below_zero(program: Plain, rule: Rule) -> set[int]:
    """A switch without a tile takes the next one that is asked for."""
    seen, owed = _copy(program), 0
    for number, each in enumerate(seen["instructions"]):
        if owed and each["tile"] is not None:
            each["tile"], owed = None, owed - 1
        owed += each["switch"] and number in rule.faults(seen)
    return set(rule.faults(seen))


def _only_products_switch(each: PlainInstruction) -> None:
    each["switch"] = each["switch"] and each["name"] != "convolve"


def _asks_for_a_tile_once(program: Plain) -> Plain:
    seen, asked = _copy(program), set()
    for each in seen["instructions"]:
        if each["tile"] in asked:
            each["tile"] = None
        asked.add(each["tile"])
    return seen


def _no_accumulators(each: PlainInstruction) -> None:
    each["sums_read"] = each["sums_written"] = []


def _waits_for_all(each: PlainInstruction) -> None:
    each["waits"] = [(engine, list(ENGINES)) for engine, _ in each["waits"]]


def _waits_both_ways(each: PlainInstruction) -> None:
    each["waits"] = each["waits"] + [(other, [engine]) for engine, others in each["waits"] for other in others]


def _reads_before_writes(program: Plain, rule: Rule) -> set[int]:
    """Looks for writes before reads and writes, and not for reads before writes."""
    found = set()
    for number in rule.faults(program):
        earlier = _copy(program)
        for each in earlier["instructions"][:number]:
            each["reads"], each["sums_read"] = list(each["writes"]), list(each["sums_written"])
        if number in rule.faults(earlier):
            found.add(number)
    return found


def _no_chains(program: Plain, rule: Rule) -> set[int]:
    """A wait for an engine says nothing of those that this one has waited for: each engine knows its own waits alone."""
    found = set()
    for engine in ENGINES:
        seen = _copy(program)
        for each in seen["instructions"]:
            each["waits"] = [wait for wait in each["waits"] if wait[0] == engine]
        found |= {number for number in rule.faults(seen) if program["instructions"][number]["engine"] == engine}
    return found


DETECTORS: Mapping[str, tuple[Detector, ...]] = {
    "unwritten": (
        _seeing("it looks at the first row that an instruction reads, not at the others", _first_read),
        _seeing("it thinks that only the host engine writes rows", _only_the_host_writes),
        _seeing("it thinks that rows are written which lie between two that are", _dense_writes),
        _seeing("it takes an instruction's own writes for earlier ones", _no_own_reads),
        _seeing("it reports a row once, and then takes it for written", _reads_write),
    ),
    "lost": (
        _seeing("it takes a multiply that accumulates for one that begins a sum", _adds_begin),
        _seeing("it looks at the first accumulator row of a multiply, not at the others", _first_sum),
        _seeing("it thinks that one activate activates all sums", _activates_all),
        Detector("it remembers the sums of the last multiply only", _remembers_the_last_multiply),
        Detector("it forgets a row that it has reported", _forgets_after_a_fault),
    ),
    "fifo": (
        _blind("it takes any number of tiles for few enough", _any_room),
        _blind("it allows one tile more than the FIFO holds", _one_more_place),
        _blind("it counts a tile that is asked for again only once", _asks_for_a_tile_once),
        _seeing("it doesn't see that convolve switches", _only_products_switch),
        Detector("it lets a switch without a tile take the next one that is asked for", _counts_below_zero),
    ),
    "race": (
        _seeing("it doesn't look at accumulators", _no_accumulators),
        _seeing("it thinks that a wait for one engine is a wait for all", _waits_for_all),
        _seeing("it thinks that the engine that is waited for waits too", _waits_both_ways),
        Detector("it sees no collision where a row is overwritten that was read", _reads_before_writes),
        Detector("it thinks that a wait for an engine says nothing of those which that one has waited for", _no_chains),
    ),
}
"""By the name of the rule. The first `SHOWN` are in the public tests; each of these is the rule on what it sees."""
SHOWN = 2
