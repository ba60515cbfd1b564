"""The critical path of a program, and the roots of waits.

An *activity* is an instruction at work, the sums that drain from the array behind one, or the shift of a tile. An instruction begins when
its unit is free, or when what its synchronisations wait for has finished, or, before a multiply, when its tile has been shifted in:
whichever was last is its *predecessor*. If two were last, it is the unit's own work.

The predecessors of an activity are a chain back through time, without gaps. From the end of the program the chain is the critical path: the
program takes as long as these activities, and it only gets faster when one of them does. From the end of a wait the chain says, for each
cycle of the wait, which activity was at work: the *root* of the wait. A multiply that waits for the activation unit, which waits for rows
of the host, has waited for the host link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, overload
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


class Limit(StrEnum):
    """What the time of a part depends on."""

    WEIGHT_MEMORY = "weight memory"
    WEIGHT_SHIFT = "weight shift"
    MATRIX_UNIT = "matrix unit"
    ACTIVATION = "activation"
    HOST_WORK = "host work"
    HOST_LINK = "host link"
    DEPENDENCIES = "data dependencies"


NOTHING = "nothing"
"""Stands for a limit where a program takes no time."""
LIMITS = tuple(Limit)
DRAINS, SHIFTS = LIMITS.index(Limit.DEPENDENCIES), LIMITS.index(Limit.WEIGHT_SHIFT)
LEAST_SHARE = 0.05
"""Percent from which on a share is named."""


class Part(NamedTuple):
    """The cycles [start, end) of the chain. The instruction of a shift is the fetch of its tile; of sums on their way, their multiply."""

    limit: Limit
    instruction: int
    start: int
    end: int

    @property
    def cycles(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, eq=False, slots=True)
class CriticalPath(Sequence[Part]):
    """Parts in the order of time, one entry of each column for each. `limit` has places in `LIMITS`."""

    limit: Int64
    instruction: Int64
    start: Int64
    end: Int64

    @classmethod
    def of(cls, parts: Sequence[Part]) -> CriticalPath:
        """The columns of parts."""
        rows = [(LIMITS.index(part.limit), *part[1:]) for part in parts]
        return cls(*np.array(rows, np.int64).reshape(-1, 4).T)

    @property
    def cycles(self) -> Int64:
        return self.end - self.start

    def of_limits(self, *limits: Limit) -> Bools:
        """Which parts are of one of these limits."""
        return np.isin(self.limit, [LIMITS.index(limit) for limit in limits])

    def __len__(self) -> int:
        return len(self.limit)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> list[Part]: ...
    def __getitem__(self, index: int | slice) -> Part | list[Part]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        return Part(LIMITS[self.limit[index]], int(self.instruction[index]), int(self.start[index]), int(self.end[index]))


def critical_path(program: Program, timeline: Timeline) -> CriticalPath:
    """The parts from cycle 0 to the makespan, in the order of time, without gaps.

    Of a batch in a stream, the chain begins where the batch does: of what began before, for example a fetch, the cycles from 0 on count.
    """
    known = activities(program, timeline)
    numbers = np.fromiter(known.chain(known.last, 0), np.int64)[::-1]
    numbers = numbers[known.end[numbers] > known.start[numbers]]
    start = np.maximum(known.start[numbers], 0)
    return CriticalPath(known.limit[numbers].astype(np.int64), known.instruction[numbers], start, known.end[numbers])


def shares(path: CriticalPath) -> dict[Limit, float]:
    """Percent of the path's cycles for each limit, in the order of `Limit`; all zero for a path without cycles."""
    spent = [int(path.cycles[path.of_limits(limit)].sum()) for limit in LIMITS]
    cycles = max(1, sum(spent))
    return {limit: 100 * own / cycles for limit, own in zip(LIMITS, spent, strict=True)}


def path_words(found: Mapping[str, float], most: int = len(Limit)) -> str:
    """`weight memory 52.7, host link 30.1`: at most so many of the shares of `shares`, from the largest on; none that is printed as 0.0."""
    largest = sorted(found.items(), key=lambda entry: -entry[1])[:most]
    return ", ".join(f"{limit.replace('_', ' ')} {share:.1f}" for limit, share in largest if share >= LEAST_SHARE)


@dataclass(frozen=True, eq=False, slots=True)
class Activities:
    """The activities of a timed program, one entry of each column for each: its n instructions, by their numbers; then the sums that drain
    behind each of them; then the shifts of its tiles."""

    start: Int64
    end: Int64
    limit: npt.NDArray[np.int8]
    """Places in `LIMITS`; `DRAINS` also of a unit that has none, and of synchronisations, which are no predecessors."""
    instruction: Int64
    """Of a shift the fetch of its tile."""
    predecessor: Int64
    """The number of an activity; -1 where there is none: the activity began in cycle 0, or before the batch, in a stream."""
    last: int
    """The number of the activity that ends with the program; -1 where nothing runs."""

    def chain(self, number: int, until: int) -> Iterator[int]:
        """An activity and its predecessors, back to the one that began in cycle `until` or before: their numbers."""
        start, predecessor = self.start.data, self.predecessor.data
        while number >= 0:
            yield number
            number = predecessor[number] if start[number] > until else -1

    def chains(self, last: Int64, until: Int64) -> tuple[Int64, Int64]:
        """The chains of several activities, each in the order of time and one after the other: the numbers of activities, and the place of
        the chain that each is in. All chains go back together, and the few that are long go on alone."""
        numbers, places, chain, last = [last[:0]], [last[:0]], np.arange(len(last)), last.copy()
        while len(chain := chain[last[chain] >= 0]) > TOGETHER:
            numbers.append(last[chain])
            places.append(chain)
            last[chain] = np.where(self.start[numbers[-1]] > until[chain], self.predecessor[numbers[-1]], -1)
        for number in chain.tolist():
            numbers.append(np.fromiter(self.chain(int(last[number]), int(until[number])), np.int64))
            places.append(np.full(len(numbers[-1]), number))
        back, of = np.concatenate(numbers)[::-1], np.concatenate(places)[::-1]
        order = np.argsort(of, kind="stable")
        return back[order], of[order]


TOGETHER = 64
"""The fewest chains that go back together."""
_KNOWN: WeakKeyDictionary[Timeline, Activities] = WeakKeyDictionary()
"""The activities of the timelines that there are: several numbers are made of them."""


def activities(program: Program, timeline: Timeline) -> Activities:
    """The activities of a program, in a time that is linear in its instructions; of a timeline they are found once."""
    if (known := _KNOWN.get(timeline)) is None:
        known = _KNOWN[timeline] = _activities(program, timeline)
    return known


def drains_of(program: Program, touched: Effects) -> Int64:
    """For each instruction the cycles from its end until its results are there."""
    return np.array([*(unit.drain(program.target) for unit in program.machine.units), 0], np.int64)[touched.engine]


def _activities(program: Program, timeline: Timeline) -> Activities:
    machine, touched = program.machine, effects(program.instructions, program.machine)
    tiles, count = timeline.tiles, len(touched)
    drains = drains_of(program, touched)
    of_units = [LIMITS.index(Limit(unit.limit)) if unit.limit in LIMITS else DRAINS for unit in machine.units]
    limit = np.array([*of_units, DRAINS], np.int8)[touched.engine]
    limit[touched.interrupts] = LIMITS.index(Limit.HOST_WORK)
    predecessor = _predecessors(program, timeline, touched, drains)
    fetches, takers = (np.flatnonzero(which)[: len(tiles.shifting)] for which in (touched.pushes, touched.pops))
    # A tile that had arrived waited for the shadow, which was free when the multiply before it began.
    of_shifts = np.where(tiles.arrived[: len(fetches)] == tiles.shifting, fetches, predecessor[np.roll(takers, 1)])
    ends = timeline.end + drains
    return Activities(
        start=np.concatenate([timeline.start, timeline.end, tiles.shifting]),
        end=np.concatenate([timeline.end, ends, tiles.shifted]),
        limit=np.concatenate([limit, np.full(count, DRAINS), np.full(len(fetches), SHIFTS)]),
        instruction=np.concatenate([np.arange(count), np.arange(count), fetches]),
        predecessor=np.concatenate([predecessor, np.arange(count), of_shifts]),
        last=_last(touched, ends == timeline.makespan, drains, machine.control),
    )


def _last(touched: Effects, finishing: Bools, drains: Int64, control: int) -> int:
    """The last of the instructions that finish with the program, of the first unit; the sums behind it, if they drain."""
    found = np.flatnonzero(finishing & (touched.engine < control))
    if not len(found):
        return -1
    index = int(found[touched.engine[found] == touched.engine[found].min()][-1])
    return index + len(touched) if drains[index] else index


def _predecessors(program: Program, timeline: Timeline, touched: Effects, drains: Int64) -> Int64:
    """For each instruction the number of its predecessor."""
    machine, count = program.machine, len(touched)
    own = [np.flatnonzero(touched.engine == unit) for unit in range(len(machine.units))]
    found = np.full(count, -1, np.int64)

    def precede(numbers: Int64, ends: Int64, instructions: Int64) -> None:
        """Activities that end in these cycles, before instructions that begin then and that have no predecessor yet."""
        here = (timeline.start[instructions] == ends) & (found[instructions] < 0)
        found[instructions[here]] = numbers[here]

    for each in own:
        precede(each[:-1], timeline.end[each[:-1]], each[1:])
    shifted = timeline.tiles.shifted
    shifts = 2 * count + np.arange(len(shifted))
    precede(shifts, shifted, np.flatnonzero(touched.pops)[: len(shifts)])
    if machine.queue is not None:  # a fetch may wait for the place of a tile before it
        fetches = np.flatnonzero(touched.pushes)[machine.queue.depth(program.target) :][: len(shifts)]
        precede(shifts[: len(fetches)], shifted[: len(fetches)], fetches)
    for _, _, behind, last in awaited_instructions(program, touched):
        precede(np.where(drains[last] > 0, last + count, last), timeline.end[last] + drains[last], behind)
    return found


def awaited_instructions(program: Program, touched: Effects) -> Iterator[tuple[int, int, Int64, Int64]]:
    """Of each two units of which one waits for the other at synchronisations, these units, the instructions of the one behind such, and for
    each of these the last instruction of the other one that it waits for."""
    for (blocked, awaited), waits in sorted(synchronisations(program, touched).items()):
        own, others = (np.flatnonzero(touched.engine == unit) for unit in (blocked, awaited))
        behind = own[own > waits[0]]
        place = np.searchsorted(others, waits[np.searchsorted(waits, behind) - 1]) - 1
        yield blocked, awaited, behind[place >= 0], others[place[place >= 0]]


def synchronisations(program: Program, touched: Effects) -> dict[tuple[int, int], Int64]:
    """The synchronisations, in order, at which a unit waits for another, by these two units."""
    machine = program.machine
    controls = np.flatnonzero(touched.engine == machine.control)
    opcodes, waiting, engines = (program.instructions[name][controls].astype(np.int64) for name in ("opcode", "index", "engines"))
    _, first, kind = np.unique(opcodes << 40 | engines << 32 | waiting, return_index=True, return_inverse=True)
    found: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(first.tolist()):
        for blocked, awaited in machine.by_opcode[int(opcodes[place])].waits(int(waiting[place]), int(engines[place])):
            for other in range(len(machine.units)):
                if awaited >> other & 1:
                    found.setdefault((blocked, other), []).append(number)
    return {pair: controls[np.isin(kind, kinds)] for pair, kinds in found.items()}
