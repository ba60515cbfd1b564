"""Why each unit stands still, and what ends it: a row for each stretch in which a unit waits before an instruction.

The stretches of the unit that computes are the stalls of the timeline. The other units wait for one thing at a time: the last that ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.machine.machine import Machine
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


class Reason(Enum):
    """What a unit waits for besides other units."""

    TILE = 0
    SHIFT = 1
    PLACE = 2
    SHADOW = 3
    ISSUE = 4


WORDS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.TILE: "tile {number}, which is asked for in cycle {begin} and arrives in {end}",
        Reason.SHIFT: "tile {number} to be shifted in, from cycle {begin} to {end}",
        Reason.PLACE: "a place in the FIFO, which tile {number} leaves in cycle {end}",
        Reason.SHADOW: "the shadow weights, which tile {number} leaves in cycle {end}",
        Reason.ISSUE: "what stands before it in the program to be issued",
    }
)
"""Words that follow "waits for"."""


def reason_words(machine: Machine) -> tuple[str, ...]:
    """Words that follow "waits for", by the number of a reason: those of units come first and have the units' numbers."""
    return (*(unit.done.format(title=unit.title) for unit in machine.units), "", *WORDS.values())


def number_of(machine: Machine, reason: Reason) -> int:
    """The number of a reason that is no unit."""
    return machine.control + 1 + reason.value


def shifter(machine: Machine) -> int:
    """The number of what shifts entries into the queue's shadow, which is no unit, beside the numbers of the units."""
    return machine.control + 1


class Stretch(NamedTuple):
    """A unit waits before an instruction, in the cycles [start, end).

    `number` is that of the instruction or of the tile that it waits for, which takes from `begin` to `end`; -1 where there is none. Before
    a shift the instruction is the one that takes the tile. `words` follow "waits for".
    """

    unit: int
    instruction: int
    start: int
    end: int
    reason: IntEnum | Reason
    """Another unit, or what else it waits for."""
    number: int
    begin: int
    words: str


_Row = tuple[int, int, int, int, int, int, int]
"""The numbers of a stretch."""


@dataclass(frozen=True, eq=False, slots=True)
class Waiting:
    """The stretches of all units, one entry of each column for each, by unit and then by time."""

    unit: npt.NDArray[np.uint8]
    instruction: Int64
    start: Int64
    end: Int64
    reason: npt.NDArray[np.uint8]
    number: Int64
    begin: Int64

    machine: Machine

    def __getitem__(self, index: int) -> Stretch:
        unit, instruction, start, end, number, what, begin = (int(column[index]) for column in self._columns)
        units, after = self.machine.units, number - self.machine.control - 1
        reason = units[number].engine if number < len(units) else Reason(after)
        words = reason_words(self.machine)[number].format(number=f"{what:,}", begin=f"{begin:,}", end=f"{end:,}")
        return Stretch(unit, instruction, start, end, reason, what, begin, words)

    def before(self, instruction: int, unit: int | None = None) -> list[Stretch]:
        """Those of a unit before one of its instructions, in the order of time; of the unit that computes unless another one is said."""
        own = self.unit == (self.machine.account.computes if unit is None else unit)
        return [self[index] for index in np.flatnonzero(own & (self.instruction == instruction)).tolist()]

    @property
    def _columns(self) -> tuple[npt.NDArray[np.integer], ...]:
        return self.unit, self.instruction, self.start, self.end, self.reason, self.number, self.begin


def waiting(program: Program, timeline: Timeline) -> Waiting:
    """Of a verified program and its timeline, in a time that is linear in its instructions."""
    found = [*_Units(program, timeline).stretches(), *_shifts(program, timeline)]
    table = np.array(found, np.int64).reshape(-1, 7)
    unit, instruction, start, end, reason, number, begin = table[np.lexsort((table[:, 2], table[:, 0]))].T
    return Waiting(unit.astype(np.uint8), instruction, start, end, reason.astype(np.uint8), number, begin, program.machine)


class _Units:
    """Goes through a program with what each unit knows: which instruction of each other unit it waits for at most."""

    def __init__(self, program: Program, timeline: Timeline) -> None:
        machine, target = program.machine, program.target
        self._program, self._touched, self._machine = program, effects(program.instructions, machine), machine
        self._drains = [unit.drain(target) for unit in machine.units]
        self._depth = machine.queue.depth(target) if machine.queue is not None else 0
        self._number = {reason: number_of(machine, reason) for reason in Reason}
        self._start, self._end = timeline.start.tolist(), timeline.end.tolist()
        self._tiles, self._stalls = timeline.tiles, timeline.stalls
        self._numbers = program.instructions["index"][self._touched.pushes].tolist()
        units = len(machine.units)
        self._last = [-1] * units
        """The last instruction of each unit."""
        self._hold = [[-1] * units for _ in range(units)]
        """For each unit the instruction of each other one that its next instruction waits for."""
        self._fetched = self._taken = 0

    def stretches(self) -> Iterator[_Row]:
        machine, touched = self._machine, self._touched
        opcodes, pops, pushes = self._program.instructions["opcode"].tolist(), touched.pops.tolist(), touched.pushes.tolist()
        index_of, engines_of = (self._program.instructions[name].tolist() for name in ("index", "engines"))
        for index, unit in enumerate(touched.engine.tolist()):
            if unit == machine.control:
                for waits, awaited in machine.by_opcode[opcodes[index]].waits(index_of[index], engines_of[index]):
                    self._wait(waits, awaited)
                continue
            self._taken += pops[index]
            if self._start[index] > self._free(unit):
                waits_as = self._compute if unit == machine.account.computes else self._fetch if pushes[index] else self._plain
                yield from waits_as(index, unit)
            self._fetched += pushes[index]
            self._last[unit] = index

    def _wait(self, waiting: int, awaited: int) -> None:
        for unit in range(len(self._last)):
            if awaited >> unit & 1:
                self._hold[waiting][unit] = self._last[unit]

    def _free(self, unit: int) -> int:
        """When a unit is done with its last instruction."""
        return self._end[self._last[unit]] if self._last[unit] >= 0 else 0

    def _plain(self, index: int, unit: int) -> Iterator[_Row]:
        """The stretch before an instruction that begins as another unit finishes."""
        start, end = self._free(unit), self._start[index]
        for other, number in enumerate(self._hold[unit]):
            if number >= 0 and self._finished(other, number) == end:
                yield unit, index, start, end, other, number, self._start[number]
                return
        yield unit, index, start, end, self._number[Reason.ISSUE], -1, -1

    def _finished(self, unit: int, instruction: int) -> int:
        """When others may use what an instruction has made."""
        end: int = self._end[instruction]
        return end + self._drains[unit]

    def _fetch(self, index: int, unit: int) -> Iterator[_Row]:
        place, end = self._fetched - self._depth, self._start[index]
        if place >= 0 and int(self._tiles.shifted[place]) == end:
            yield unit, index, self._free(unit), end, self._number[Reason.PLACE], self._numbers[place], int(self._tiles.shifting[place])
        else:
            yield from self._plain(index, unit)

    def _compute(self, index: int, unit: int) -> Iterator[_Row]:
        """Those of the timeline's stalls, in the order in which they follow each other."""
        start, tile, account = self._free(unit), self._taken - 1, self._machine.account
        held, of_reason = self._hold[unit], self._number
        columns = (self._stalls.raw, self._stalls.input, self._stalls.weight, self._stalls.shift, self._stalls.other)
        reasons = (account.finishes, account.supplies, of_reason[Reason.TILE], of_reason[Reason.SHIFT], of_reason[Reason.ISSUE])
        for column, reason in zip(columns, reasons, strict=True):
            end = start + int(column[index])
            if end == start:
                continue
            number, begin = -1, -1
            if reason < len(held):
                number, begin = held[reason], self._start[held[reason]]
            elif reason != of_reason[Reason.ISSUE]:
                times = self._tiles.asked if reason == of_reason[Reason.TILE] else self._tiles.shifting
                number, begin = self._numbers[tile], int(times[tile])
            yield unit, index, start, end, reason, number, begin
            start = end


def _shifts(program: Program, timeline: Timeline) -> Iterator[_Row]:
    """What the weight shift waits for before each tile: its arrival, then the shadow weights, if they hold the tile before."""
    touched, tiles, machine = effects(program.instructions, program.machine), timeline.tiles, program.machine
    arrival, shadow = number_of(machine, Reason.TILE), number_of(machine, Reason.SHADOW)
    numbers, takers = program.instructions["index"][touched.pushes].tolist(), np.flatnonzero(touched.pops).tolist()
    columns = (tiles.asked, tiles.arrived, tiles.shifting, tiles.shifted)
    free = 0
    for place, (asked, arrived, shifting, shifted) in enumerate(zip(*(c.tolist() for c in columns), strict=False)):
        here = min(max(free, arrived), shifting)
        if here > free:
            yield shifter(machine), takers[place], free, here, arrival, numbers[place], asked
        if shifting > here:
            yield shifter(machine), takers[place], here, shifting, shadow, numbers[place - 1], free
        free = shifted
