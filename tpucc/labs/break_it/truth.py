"""The rules of which a term asks for one: what they demand, which of the verifier's rules they are, and which instructions break them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from tpucc.labs.break_it.plain import Plain, PlainInstruction

Faults = Mapping[int, str]
"""The numbers of the instructions that break a rule, each with the reason."""
Clock = dict[str, int]
"""For each engine the number of its last instruction that is certainly finished."""


@dataclass(frozen=True)
class Rule:
    """A rule by its name. `codes` are the verifier's rules that say the same."""

    name: str
    says: str
    codes: tuple[str, ...]
    faults: Callable[[Plain], Faults]


def unwritten(program: Plain, learned: Callable[[PlainInstruction], Sequence[int]] = itemgetter("writes")) -> Faults:
    """Rows of the unified buffer that are read and have not been written. `learned` are the rows that count as written from an
    instruction on."""
    # lab 8 begin: find the instructions at fault
    written: set[int] = set()
    found = {}
    for number, each in enumerate(program["instructions"]):
        if missing := sorted(set(each["reads"]) - written):
            found[number] = f"it reads row {missing[0]}, which nothing has written"
        written |= set(learned(each))
    return found
    # lab 8 end


Sums = set[int]
"""Rows of accumulators."""


def waiting_after(waiting: Sums, added: Sums, written: Sums) -> Sums:
    """The rows whose sums wait to be activated, after an instruction that reads the sums `added` and writes those in `written`."""
    # lab 8 begin: find the instructions at fault
    return waiting | written if written else waiting - added
    # lab 8 end


def lost(program: Plain, after: Callable[[Sums, Sums, Sums], Sums] = waiting_after) -> Faults:
    """Multiplies that begin a sum where one lies that was never activated. `after` gives the rows that wait after an instruction."""
    # lab 8 begin: find the instructions at fault
    waiting: set[int] = set()
    found = {}
    for number, each in enumerate(program["instructions"]):
        added, written = set(each["sums_read"]), set(each["sums_written"])
        if gone := sorted((written - added) & waiting):
            found[number] = f"it begins a sum in accumulator row {gone[0]}, whose sum was not activated"
        waiting = after(waiting, added, written)
    return found
    # lab 8 end


def fifo(program: Plain, least: int = 0) -> Faults:
    """Switches without a tile in the FIFO, and requests that it has no room for. There are never fewer tiles than `least`."""
    # lab 8 begin: find the instructions at fault
    waiting = 0
    found = {}
    for number, each in enumerate(program["instructions"]):
        if each["tile"] is not None:
            waiting += 1
            if waiting > program["fifo"]:
                found[number] = f"it asks for a tile while {waiting - 1} wait, and the FIFO holds {program['fifo']}"
        if each["switch"]:
            if waiting <= 0:
                found[number] = "it switches, and the FIFO is empty"
            waiting = max(least, waiting - 1)
    return found
    # lab 8 end


def race(program: Plain) -> Faults:
    """Accesses of two engines to a row, one of them a write, of which the second may start before the first has finished."""
    # lab 8 begin: find the instructions at fault
    known: dict[str, Clock] = {}
    begun: dict[int, Clock] = {}
    last: Clock = {}
    seen: dict[tuple[str, int], list[tuple[int, str, bool]]] = {}
    found: dict[int, str] = {}
    for number, each in enumerate(program["instructions"]):
        for engine, others in each["waits"]:
            known[engine] = _joined([known.get(engine, {}), *_finished(others, last, begun)])
        if each["engine"] == "control":
            continue
        begun[number] = known.get(each["engine"], {})
        for (memory, row), writes in _touched(each):
            for other, engine, wrote in seen.setdefault((memory, row), []):
                if engine != each["engine"] and (writes or wrote) and begun[number].get(engine, -1) < other:
                    found.setdefault(number, f"it touches row {row} of the {memory} without a wait for instruction {other} ({engine})")
            seen[memory, row].append((number, each["engine"], writes))
        last[each["engine"]] = number
    return found
    # lab 8 end


def _finished(engines: Iterable[str], last: Clock, begun: Mapping[int, Clock]) -> Iterator[Clock]:
    """What is finished when the last instructions of some engines are: these, and all that they have waited for."""
    # lab 8 begin: find the instructions at fault
    for engine in engines:
        if engine in last:
            yield {engine: last[engine]}
            yield begun[last[engine]]
    # lab 8 end


def _joined(clocks: Iterable[Clock]) -> Clock:
    # lab 8 begin: find the instructions at fault
    joined: Clock = {}
    for clock in clocks:
        for engine, number in clock.items():
            joined[engine] = max(number, joined.get(engine, -1))
    return joined
    # lab 8 end


def _touched(each: PlainInstruction) -> Iterator[tuple[tuple[str, int], bool]]:
    """The rows that an instruction touches, and whether it writes them."""
    # lab 8 begin: find the instructions at fault
    for memory, reads, writes in (
        ("unified buffer", each["reads"], each["writes"]),
        ("accumulators", each["sums_read"], each["sums_written"]),
    ):
        yield from (((memory, row), row in writes) for row in sorted({*reads, *writes}))
    # lab 8 end


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "unwritten",
            "An instruction that reads a row of the unified buffer which no instruction before it has written is at fault. Whether the row "
            "was at fault before makes no difference.",
            ("V0401",),
            unwritten,
        ),
        Rule(
            "lost",
            "A multiply writes sums. One without `accumulate`, which reads none, begins new sums: it is at fault when one of its "
            "accumulator rows holds a sum that was begun or added to, and not activated since. An instruction that reads sums and writes "
            "none activates them. After a multiply that is at fault its new sums wait to be activated, as after any other.",
            ("V0502",),
            lost,
        ),
        Rule(
            "fifo",
            "The FIFO is empty at first. An instruction that asks for a tile (`tile` is a number) puts one there; it is at fault when more "
            "tiles are there then than the FIFO holds, and they count all the same. An instruction that switches takes one; it is at fault "
            "when none is there, and takes nothing then.",
            ("V0601", "V0602"),
            fifo,
        ),
        Rule(
            "race",
            "Engines work at the same time, each on its own instructions in order. Two instructions of different engines collide when "
            "both touch the same row of the unified buffer, or of the accumulators, and at least one of them writes it. The later one is "
            "at fault unless it certainly starts after the earlier one has finished. A wait (E, [F, …]) at number n makes all later "
            "instructions of E start after those of F before n have finished, and after everything that the last of them has waited for. "
            "Instructions of the engine `control` touch nothing.",
            ("V0801", "V0802", "V0803"),
            race,
        ),
    )
}
