"""The critical path: a chain of work that is as long as the program, each part of it beginning when the one before ends.

The chain is found from its end. An instruction begins when its unit is free, or when what its synchronisations wait for has finished, or,
before a multiply, when its tile has been shifted in: whichever was last is the part before. So a program takes as long as the parts of
this chain, and it only gets faster when one of them does. If two were last, the chain goes on with the unit's own work.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
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
    return [part for part in reversed(list(_Chain(program, timeline).parts())) if part.cycles]


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


class _Chain:
    """What each instruction of a program waits for, looked up for those of the chain alone."""

    def __init__(self, program: Program, timeline: Timeline) -> None:
        touched, self._program, self._timeline = effects(program.instructions, program.machine), program, timeline
        machine, target = program.machine, program.target
        self._machine, self._units = machine, range(len(machine.units))
        self._drains = [unit.drain(target) for unit in machine.units]
        self._depth = machine.queue.depth(target) if machine.queue is not None else 0
        self._interrupts, self._pushes = touched.interrupts, touched.pushes
        self._fetches: list[int] = np.flatnonzero(touched.pushes).tolist()
        self._unit_of: list[int] = touched.engine.tolist()
        self._work: list[list[int]] = [np.flatnonzero(touched.engine == unit).tolist() for unit in self._units]
        self._takers: list[int] = np.flatnonzero(touched.pops).tolist()
        """The multiply that takes each fetched tile."""
        self._waits = self._synchronisations()

    def _synchronisations(self) -> dict[tuple[int, int], list[int]]:
        """The synchronisations, in order, at which a unit waits for another, by these two units."""
        found: dict[tuple[int, int], list[int]] = {}
        opcodes, waiting, engines = (self._program.instructions[name].tolist() for name in ("opcode", "index", "engines"))
        for index, unit in enumerate(self._unit_of):
            if unit == self._machine.control:
                for blocked, awaited in self._machine.by_opcode[opcodes[index]].waits(waiting[index], engines[index]):
                    for other in self._units:
                        if awaited >> other & 1:
                            found.setdefault((blocked, other), []).append(index)
        return found

    def parts(self) -> Iterator[Part]:
        """From the last to the first."""
        end, count = self._timeline.makespan, len(self._unit_of)
        part = next((done for unit in self._units if (done := self._finishing(unit, count, end))), None)
        while part:
            yield part._replace(start=max(part.start, 0))
            part = self._before(part) if part.start > 0 else None

    def _before(self, part: Part) -> Part | None:
        """What ends where a part starts. None: what the batch before left, in a stream."""
        match part.limit:
            case Limit.DEPENDENCIES:
                return self._done(part.instruction)
            case Limit.WEIGHT_SHIFT:
                tile = self._tile(part.instruction)
                if self._timeline.tiles.arrived[tile] == part.start:
                    return self._done(part.instruction)
                return self._awaited(self._takers[tile - 1])  # the shadow was free when this multiply began
            case _:
                return self._awaited(part.instruction)

    def _awaited(self, index: int) -> Part | None:
        """What ends where an instruction starts: its unit's work before, a shift, or what a synchronisation waits for."""
        unit, time = self._unit_of[index], int(self._timeline.start[index])
        last = self._last(unit, index)
        if last >= 0 and self._timeline.end[last] == time:
            return self._done(last)
        tile = self._shifted_for(index)
        if tile >= 0 and self._timeline.tiles.shifted[tile] == time:
            return Part(Limit.WEIGHT_SHIFT, self._fetches[tile], int(self._timeline.tiles.shifting[tile]), time)
        for other in self._units:
            waits = self._waits.get((unit, other), [])
            place = bisect_left(waits, index)
            if place and (found := self._finishing(other, waits[place - 1], time)):
                return found
        return None

    def _shifted_for(self, index: int) -> int:
        """The tile whose shift an instruction waits for: the multiply's own, or the one whose place in the FIFO a fetch takes; -1: none."""
        if self._pushes[index]:
            return max(-1, self._tile(index) - self._depth)
        place = bisect_left(self._takers, index)
        return place if self._takers[place : place + 1] == [index] else -1

    def _finishing(self, unit: int, index: int, time: int) -> Part | None:
        """The end of a unit's last instruction before `index`, if others could use its results at `time`."""
        last = self._last(unit, index)
        if last < 0:
            return None
        if not self._drains[unit]:
            return self._done(last) if self._timeline.end[last] == time else None
        drained = int(self._timeline.end[last]) + self._drains[unit]
        return Part(Limit.DEPENDENCIES, last, int(self._timeline.end[last]), time) if drained == time else None

    def _done(self, index: int) -> Part:
        """The work of an instruction."""
        limit = Limit.HOST_WORK if self._interrupts[index] else Limit(self._machine.units[self._unit_of[index]].limit)
        return Part(limit, index, int(self._timeline.start[index]), int(self._timeline.end[index]))

    def _tile(self, fetch: int) -> int:
        """Which of the fetched tiles an instruction fetches."""
        return bisect_left(self._fetches, fetch)

    def _last(self, unit: int, index: int) -> int:
        """A unit's last instruction before `index`; -1 where there is none."""
        place = bisect_left(self._work[unit], index)
        return self._work[unit][place - 1] if place else -1
