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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
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


def critical_path(program: Program, timeline: Timeline) -> list[Part]:
    """The parts from cycle 0 to the makespan, in the order of time, without gaps.

    Of a batch in a stream, the chain begins where the batch does: of what began before, for example a fetch, the cycles from 0 on count.
    """
    known = activities(program, timeline)
    numbers = list(known.chain(known.last, 0))[::-1]
    rows = zip(*(column[numbers].tolist() for column in (known.limit, known.instruction, known.start, known.end)), strict=True)
    return [Part(LIMITS[limit], index, max(start, 0), end) for limit, index, start, end in rows if end > start]


def shares(path: list[Part]) -> dict[Limit, float]:
    """Percent of the path's cycles for each limit, in the order of `Limit`; all zero for a path without cycles."""
    spent = dict.fromkeys(Limit, 0)
    for part in path:
        spent[part.limit] += part.cycles
    cycles = max(1, sum(spent.values()))
    return {limit: 100 * own / cycles for limit, own in spent.items()}


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
