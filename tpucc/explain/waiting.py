"""Why each unit stands still, and what ends it: a row for each stretch in which a unit waits before an instruction.

The stretches of the unit that computes are the stalls of the timeline. The other units wait for one thing at a time: the last that ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.explain.critical import activities, awaited_instructions
from tpucc.explain.stalls import stalls
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.machine.machine import Machine
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline


class Reason(Enum):
    """What a unit waits for besides other units, in words that follow "waits for"."""

    TILE = "tile {number}, which is asked for in cycle {begin} and arrives in {end}"
    SHIFT = "tile {number} to be shifted in, from cycle {begin} to {end}"
    PLACE = "a place in the FIFO, which tile {number} leaves in cycle {end}"
    SHADOW = "the shadow weights, which tile {number} leaves in cycle {end}"
    ISSUE = "what stands before it in the program to be issued"


REASONS = tuple(Reason)
PUSHED = "the tile of instruction {number}"
"""What is said for a tile where instructions push what they compute, so that tiles have no numbers."""


def reason_words(machine: Machine) -> tuple[str, ...]:
    """Words that follow "waits for", by the number of a reason: the words of units come first, at the units' numbers."""
    pushed = machine.queue is not None and not machine.queue.stored
    reasons = (reason.value.replace("tile {number}", PUSHED) if pushed else reason.value for reason in REASONS)
    return (*(unit.done.format(title=unit.title) for unit in machine.units), "", *reasons)


def number_of(machine: Machine, reason: Reason) -> int:
    """The number of a reason that is no unit."""
    return machine.control + 1 + REASONS.index(reason)


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
        reason = units[number].engine if number < len(units) else REASONS[after]
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
    touched = effects(program.instructions, program.machine)
    free = np.zeros(len(touched), np.int64)
    for each in range(len(program.machine.units)):
        own = np.flatnonzero(touched.engine == each)
        free[own[1:]] = timeline.end[own[:-1]]
    parts = (_computing(program, timeline, touched, free), _others(program, timeline, touched, free), _shifts(program, timeline, touched))
    table = np.concatenate(parts, axis=1)
    table = table[:, table[3] > table[2]]
    unit, instruction, start, end, reason, number, begin = table[:, np.lexsort((table[2], table[0]))]
    return Waiting(unit.astype(np.uint8), instruction, start, end, reason.astype(np.uint8), number, begin, program.machine)


def _entries(program: Program, touched: Effects) -> Int64:
    """The numbers of the tiles that are asked for; where instructions push what they compute, the numbers of these."""
    queue, pushes = program.machine.queue, np.flatnonzero(touched.pushes)
    return program.instructions["index"][pushes].astype(np.int64) if queue is not None and queue.stored else pushes


def _table(*columns: Int64 | int) -> Int64:
    """The columns of stretches, in the order of `Stretch` [7, stretches]; a number stands for a column of it."""
    return np.stack(np.broadcast_arrays(*columns)).astype(np.int64)


def _others(program: Program, timeline: Timeline, touched: Effects, free: Int64) -> Int64:
    """Before each instruction of a unit that doesn't compute: it begins as its predecessor ends. `free` is when its unit is done with the
    instruction before it."""
    machine, instructions = program.machine, np.arange(len(touched))
    own = np.flatnonzero((touched.engine < machine.control) & (touched.engine != machine.account.computes))
    before = activities(program, timeline).predecessor[own]
    places = timeline.tiles.shifting
    reasons = np.concatenate(
        [touched.engine, touched.engine, np.full(len(places), number_of(machine, Reason.PLACE)), [number_of(machine, Reason.ISSUE)]]
    )
    numbers = np.concatenate([instructions, instructions, _entries(program, touched)[: len(places)], [-1]])
    begins = np.concatenate([timeline.start, timeline.start, places, [-1]])
    units = touched.engine[own].astype(np.int64)
    return _table(units, own, free[own], timeline.start[own], reasons[before], numbers[before], begins[before])


def _computing(program: Program, timeline: Timeline, touched: Effects, free: Int64) -> Int64:
    """Before each instruction of the unit that computes: its stalls, in the order in which they follow each other."""
    machine, account = program.machine, program.machine.account
    own = np.flatnonzero(touched.engine == account.computes)
    lengths = stalls(program, timeline)
    ends = free[own] + np.cumsum(lengths, axis=0)
    last: dict[int, Int64] = {other: np.full(len(touched), -1, np.int64) for other in (account.finishes, account.supplies)}
    for unit, other, behind, awaited in awaited_instructions(program, touched):
        if unit == account.computes and other in last:
            last[other][behind] = awaited
    tile, tiles = np.cumsum(touched.pops)[own] - 1, timeline.tiles
    number = np.append(_entries(program, touched), -1)[tile]
    waits = (
        *((other, last[other][own], timeline.start[last[other][own]]) for other in (account.finishes, account.supplies)),
        (number_of(machine, Reason.TILE), number, np.append(tiles.asked, -1)[tile]),
        (number_of(machine, Reason.SHIFT), number, np.append(tiles.shifting, -1)[tile]),
        (number_of(machine, Reason.ISSUE), -1, -1),
    )
    parts = [_table(account.computes, own, end - length, end, *why) for length, end, why in zip(lengths, ends, waits, strict=True)]
    return np.concatenate(parts, axis=1)


def _shifts(program: Program, timeline: Timeline, touched: Effects) -> Int64:
    """What the weight shift waits for before each tile: its arrival, then the shadow weights, if they hold the tile before."""
    tiles, machine = timeline.tiles, program.machine
    count = len(tiles.shifting)
    takers, numbers = np.flatnonzero(touched.pops)[:count], _entries(program, touched)[:count]
    free = np.append(0, tiles.shifted)[:count]
    here = np.minimum(np.maximum(free, tiles.arrived[:count]), tiles.shifting)
    arrival, shadow = number_of(machine, Reason.TILE), number_of(machine, Reason.SHADOW)
    parts = (
        _table(shifter(machine), takers, free, here, arrival, numbers, tiles.asked[:count]),
        _table(shifter(machine), takers, here, tiles.shifting, shadow, np.roll(numbers, 1), free),
    )
    return np.concatenate(parts, axis=1)
