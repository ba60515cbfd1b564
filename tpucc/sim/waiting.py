"""Why each unit stands still, and what ends it: a row for each stretch in which a unit waits before an instruction.

The matrix unit's stretches are the stalls of the timeline. The other units wait for one thing at a time: the last that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import effects
from tpucc.isa.instructions import SPECS, UNITS, Engine, Opcode
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


class Reason(IntEnum):
    """What a unit waits for. Those of other units have the numbers of their engines."""

    HOST = Engine.HOST
    WEIGHTS = Engine.WEIGHTS
    MATRIX = Engine.MATRIX
    ACTIVATION = Engine.ACTIVATION
    TILE = 5
    SHIFT = 6
    PLACE = 7
    SHADOW = 8
    ISSUE = 9


WORDS: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.HOST: "the host link, whose instruction {number} ends in cycle {end}",
        Reason.WEIGHTS: "the weight fetch, whose instruction {number} ends in cycle {end}",
        Reason.MATRIX: "the matrix unit, whose sums of instruction {number} are complete in cycle {end}",
        Reason.ACTIVATION: "the activation unit, whose instruction {number} ends in cycle {end}",
        Reason.TILE: "tile {number}, which is asked for in cycle {begin} and arrives in {end}",
        Reason.SHIFT: "tile {number} to be shifted in, from cycle {begin} to {end}",
        Reason.PLACE: "a place in the FIFO, which tile {number} leaves in cycle {end}",
        Reason.SHADOW: "the shadow weights, which tile {number} leaves in cycle {end}",
        Reason.ISSUE: "what stands before it in the program to be issued",
    }
)
"""Words that follow "waits for"."""
SHIFTER = len(Engine)
"""The weight shift, which is no engine, beside the numbers of the engines."""


class Stretch(NamedTuple):
    """A unit waits before an instruction, in the cycles [start, end).

    `number` is that of the instruction or of the tile that it waits for, which takes from `begin` to `end`; -1 where there is none. Before
    a shift the instruction is the multiply that takes the tile.
    """

    unit: int
    instruction: int
    start: int
    end: int
    reason: Reason
    number: int = -1
    begin: int = -1

    @property
    def words(self) -> str:
        """What it waits for: words that follow "waits for"."""
        return WORDS[self.reason].format(number=f"{self.number:,}", begin=f"{self.begin:,}", end=f"{self.end:,}")


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

    def __getitem__(self, index: int) -> Stretch:
        unit, instruction, start, end, reason, number, begin = (int(column[index]) for column in self._columns)
        return Stretch(unit, instruction, start, end, Reason(reason), number, begin)

    def before(self, instruction: int, unit: int = Engine.MATRIX) -> list[Stretch]:
        """Those of a unit before one of its instructions, in the order of time."""
        return [self[index] for index in np.flatnonzero((self.unit == unit) & (self.instruction == instruction)).tolist()]

    @property
    def _columns(self) -> tuple[npt.NDArray[np.integer], ...]:
        return self.unit, self.instruction, self.start, self.end, self.reason, self.number, self.begin


def waiting(program: Program, timeline: Timeline) -> Waiting:
    """Of a verified program and its timeline, in a time that is linear in its instructions."""
    found = [*_Units(program, timeline).stretches(), *_shifts(program, timeline)]
    table = np.array(found, np.int64).reshape(-1, len(Stretch._fields))
    unit, instruction, start, end, reason, number, begin = table[np.lexsort((table[:, 2], table[:, 0]))].T
    return Waiting(unit.astype(np.uint8), instruction, start, end, reason.astype(np.uint8), number, begin)


class _Units:
    """Goes through a program with what each unit knows: which instruction of each other unit it waits for at most."""

    def __init__(self, program: Program, timeline: Timeline) -> None:
        self._program, self._touched = program, effects(program.instructions)
        self._start, self._end = timeline.start.tolist(), timeline.end.tolist()
        self._tiles, self._stalls = timeline.tiles, timeline.stalls
        self._numbers = program.instructions["index"][self._touched.pushes].tolist()
        self._last = [-1] * len(UNITS)
        """The last instruction of each unit."""
        self._hold = [[-1] * len(UNITS) for _ in UNITS]
        """For each unit the instruction of each other one that its next instruction waits for."""
        self._fetched = self._taken = 0

    def stretches(self) -> Iterator[Stretch]:
        work: dict[int, Callable[[int, int], Iterator[Stretch]]] = {Engine.MATRIX: self._multiply, Engine.WEIGHTS: self._fetch}
        opcodes, pops = self._program.instructions["opcode"].tolist(), self._touched.pops.tolist()
        index_of, engines_of = (self._program.instructions[name].tolist() for name in ("index", "engines"))
        for index, unit in enumerate(self._touched.engine.tolist()):
            if unit == Engine.CONTROL:
                for waits, awaited in SPECS[Opcode(opcodes[index])].waits(index_of[index], engines_of[index]):
                    self._wait(waits, awaited)
                continue
            self._taken += pops[index]
            if self._start[index] > self._free(unit):
                yield from work.get(unit, self._plain)(index, unit)
            self._fetched += unit == Engine.WEIGHTS
            self._last[unit] = index

    def _wait(self, waiting: int, awaited: int) -> None:
        for unit in UNITS:
            if awaited >> unit & 1:
                self._hold[waiting][unit] = self._last[unit]

    def _free(self, unit: int) -> int:
        """When a unit is done with its last instruction."""
        return self._end[self._last[unit]] if self._last[unit] >= 0 else 0

    def _plain(self, index: int, unit: int) -> Iterator[Stretch]:
        """The stretch before an instruction that begins as another unit finishes."""
        start, end = self._free(unit), self._start[index]
        for other, number in enumerate(self._hold[unit]):
            if number >= 0 and self._finished(other, number) == end:
                yield Stretch(unit, index, start, end, Reason(other), number, self._start[number])
                return
        yield Stretch(unit, index, start, end, Reason.ISSUE)

    def _finished(self, unit: int, instruction: int) -> int:
        """When others may use what an instruction has made."""
        end: int = self._end[instruction]
        return end + self._program.target.pipeline_cycles if unit == Engine.MATRIX else end

    def _fetch(self, index: int, unit: int) -> Iterator[Stretch]:
        place, end = self._fetched - self._program.target.weight_fifo_tiles, self._start[index]
        if place >= 0 and int(self._tiles.shifted[place]) == end:
            yield Stretch(unit, index, self._free(unit), end, Reason.PLACE, self._numbers[place], int(self._tiles.shifting[place]))
        else:
            yield from self._plain(index, unit)

    def _multiply(self, index: int, unit: int) -> Iterator[Stretch]:
        """Those of the timeline's stalls, in the order in which they follow each other."""
        start, tile = self._free(unit), self._taken - 1
        held = self._hold[unit]
        for column, reason in (
            (self._stalls.raw, Reason.ACTIVATION),
            (self._stalls.input, Reason.HOST),
            (self._stalls.weight, Reason.TILE),
            (self._stalls.shift, Reason.SHIFT),
            (self._stalls.other, Reason.ISSUE),
        ):
            end = start + int(column[index])
            if end == start:
                continue
            number, begin = -1, -1
            if reason in (Reason.ACTIVATION, Reason.HOST):
                number, begin = held[reason], self._start[held[reason]]
            elif reason in (Reason.TILE, Reason.SHIFT):
                times = self._tiles.asked if reason is Reason.TILE else self._tiles.shifting
                number, begin = self._numbers[tile], int(times[tile])
            yield Stretch(unit, index, start, end, reason, number, begin)
            start = end


def _shifts(program: Program, timeline: Timeline) -> Iterator[Stretch]:
    """What the weight shift waits for before each tile: its arrival, then the shadow weights, if they hold the tile before."""
    touched, tiles = effects(program.instructions), timeline.tiles
    numbers, takers = program.instructions["index"][touched.pushes].tolist(), np.flatnonzero(touched.pops).tolist()
    columns = (tiles.asked, tiles.arrived, tiles.shifting, tiles.shifted)
    free = 0
    for place, (asked, arrived, shifting, shifted) in enumerate(zip(*(c.tolist() for c in columns), strict=False)):
        here = min(max(free, arrived), shifting)
        if here > free:
            yield Stretch(SHIFTER, takers[place], free, here, Reason.TILE, numbers[place], asked)
        if shifting > here:
            yield Stretch(SHIFTER, takers[place], here, shifting, Reason.SHADOW, numbers[place - 1], free)
        free = shifted
