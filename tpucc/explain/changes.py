"""What changes in a run of a program if one element of its inputs is another number: of each instruction the rows that it makes otherwise.

The program is executed twice, side by side, and only what reaches some rows of its outputs (`tpucc.explain.slices`). The integers are
the machine's. Values have 8 bits: a row of a memory has whole values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import NamedTuple

import numpy as np

from tpucc.explain.slices import RUN, Slice
from tpucc.isa.effects import Bools
from tpucc.isa.program import Port, Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.numerics import AnyArray, Int64
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import AppliedInstruction, RowIndex, numbered, rows_of
from tpucc.sim.ports import column_blocks

TILES = "tiles"
"""Stands for weight memory among the memories: it has `mxu` rows for each tile."""


class At(NamedTuple):
    """A value in a memory: its row, its lane and its integer."""

    memory: str
    row: int
    lane: int
    value: int


class Move(NamedTuple):
    """An instruction takes a value from one place to another. `place` is that of the row in the walk of its result; `source` is None where
    the host has kept what it makes the value of. `factor` is the weight of a product."""

    instruction: int
    place: int
    source: At | None
    target: At
    factor: int | None


class Operand(NamedTuple):
    """An operand of rows that change: their numbers, [rows] or [rows, window], and their values before and after, [..., lanes].
    `weighted` says that a product multiplies it by a tile."""

    memory: str
    rows: Int64
    before: AnyArray
    after: AnyArray
    weighted: bool = False

    @property
    def differs(self) -> Bools:
        """Which of the rows have other values before than after: bool [rows]."""
        return np.asarray((self.before != self.after).reshape(len(self.rows), -1).any(axis=1))

    def only(self, places: Int64) -> Operand:
        return self._replace(rows=self.rows[places], before=self.before[places], after=self.after[places])

    def largest(self, place: int, lane: int, weights: AnyArray | None) -> tuple[int, At, int | None]:
        """Of what changes for a lane of the result: the largest part in its difference, with its value and its weight."""
        parts = np.abs(self.after[place].astype(np.int64) - self.before[place])
        if not self.weighted or weights is None:
            lane = min(lane, parts.shape[-1] - 1)  # one lane may stand for all
            column, rows = parts[..., lane].reshape(-1), self.rows[place].reshape(-1)
            which = int(column.argmax())
            return int(column[which]), At(self.memory, int(rows[which]), lane, int(self.before[place][..., lane].reshape(-1)[which])), None
        parts *= np.abs(weights.astype(np.int64))
        lane = int(parts.argmax())
        return int(parts[lane]), At(self.memory, int(self.rows[place]), lane, int(self.before[place, lane])), int(weights[lane])


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A tile in use: its number, and its weights before and after."""

    number: int
    before: AnyArray
    after: AnyArray

    def largest(self, values: AnyArray, lane: int) -> tuple[int, At, int | None]:
        """The weight of a lane of the result that changes most, times the value that it multiplies."""
        column, values = self.before[:, lane], np.abs(values.astype(np.int64))
        parts = np.abs(self.after[:, lane].astype(np.int64) - column) * values
        row = int(parts.argmax())
        return int(parts[row]), At(TILES, self.number * len(column) + row, lane, int(column[row])), None


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Rows that an instruction makes otherwise: their places in the walk of the result, their numbers, and their values [rows, mxu]."""

    index: int
    memory: str
    places: Int64
    rows: Int64
    values: AnyArray
    operands: Sequence[Operand]
    tile: Tile | None = None
    cause: At | None = None
    """What changes most of all that a step of the host has read."""

    def move(self, at: At) -> Move | None:
        """How a value came to where it is; None where this instruction didn't write it."""
        found = np.flatnonzero(self.rows == at.row)
        if self.memory != at.memory or not len(found):
            return None
        row = int(found[0])
        index, place, target = self.index, int(self.places[row]), at._replace(value=int(self.values[row, at.lane]))
        if not self.operands:
            return Move(index, place, self.cause, target, None)
        column = None if self.tile is None else self.tile.before[:, at.lane]
        parts = [operand.largest(row, at.lane, column) for operand in self.operands]
        if self.tile is not None:
            parts += [self.tile.largest(operand.after[row], at.lane) for operand in self.operands if operand.weighted]
        _, source, factor = max(parts, key=lambda part: part[0])
        return Move(index, place, source, target, factor)


def cells(program: Program, ports: Iterable[Port], items: int = 1) -> Iterator[tuple[slice, int]]:
    """The rows of host memory that the first of `items` items has in each port, and how many lanes of them; of a port that isn't divided
    into so many, all rows."""
    for port in ports:
        most = int(np.prod(port.shape[1:-1])) if items > 1 and port.shape[:1] == (items,) else None
        for rows, columns, stretch in column_blocks(port, program.host, program.target.mxu):
            stop = rows.stop if most is None else min(rows.stop, most)
            if stop > rows.start:
                yield slice(stretch.start, stretch.start + stop - rows.start), columns.stop - columns.start


class SideBySide:
    """A program on two inputs: `before` and `after` have begun, and `changes` are in the order of the program when both have run."""

    def __init__(self, program: Program, before: Interpreter, after: Interpreter) -> None:
        self.program, self.changes = program, list[Change]()
        self._both = before, after
        self.host = next(name for name, rows in before.memories.rows.items() if rows is before.memories.buffers)

    def run(self, rows: Iterable[slice]) -> None:
        """Executes what these rows of host memory depend on, as they are at the end."""
        own = Slice(self.program, {}, len(self.program.instructions) - 1)
        for each in rows:
            own.host[each] |= RUN
        for index, places in enumerate(own.places()):
            instruction = self.program.machine.read(self.program.instructions[index])
            change = self._operands(index, instruction, places)
            self._execute(index, places, change)
            if change is not None:
                self._keep(change, instruction)

    def _execute(self, index: int, places: Int64 | None, change: Change | None) -> None:
        """Executes an instruction twice. Rows whose operands are the same before and after are computed once: most are."""
        before, after = self._both
        before.execute(index, places)
        if change is None or places is None or not change.operands or self.program.written_tiles:
            after.execute(index, places)
            return
        differ = np.logical_or.reduce([operand.differs for operand in change.operands])
        after.execute(index, places[differ])
        same = change.rows[~differ]
        after.memories[change.memory][same] = before.memories[change.memory][same]

    def largest(self, found: Iterable[tuple[slice, int]]) -> At | None:
        """The value of host memory that changes most in these rows and lanes, the first of them; None where none does."""
        best, most = None, 0
        for rows, lanes in found:
            before, after = (each.memories.buffers[rows, :lanes].astype(np.int64) for each in self._both)
            row, lane = divmod(int(np.abs(after - before).argmax()), lanes)
            if (change := abs(int(after[row, lane] - before[row, lane]))) > most:
                best, most = At(self.host, rows.start + row, lane, int(before[row, lane])), change
        return best

    def _operands(self, index: int, instruction: DecodedInstruction, places: Int64 | None) -> Change | None:
        """An instruction that is about to be executed, with all rows that it makes and no values of them; None for one that makes none."""
        program, machine, none = self.program, self.program.machine, np.zeros(0, np.int64)
        number = instruction.values.get("index", 0)
        if instruction.reads & machine.ports:
            if number >= len(program.host_steps):
                return None
            read, filled = program.step_ports[number]
            rows = np.concatenate([none, *(np.arange(own.start, own.stop) for own, _ in cells(program, filled))])
            return Change(index, self.host, rows, rows, none, (), cause=self.largest(cells(program, read)))
        if machine.queue is not None and instruction.writes & machine.queue.stored:
            (place,) = machine.rows_in(instruction.reads)
            rows = numbered(rows_of(machine, instruction, place))
            before, after = (each.memories[place.memory][rows].copy() for each in self._both)
            own = np.arange(len(rows))
            return Change(index, TILES, own, number * program.target.mxu + own, none, (Operand(place.memory, rows, before, after),))
        if places is None or not len(places) or (action := self._both[0].applied(instruction)) is None:
            return None
        chosen = action.only(places)
        operands = [self._operand(chosen, place, rows, len(places)) for place, rows in chosen.reads]
        to, written = chosen.writes
        return Change(index, machine.rows_at(to).memory, places, numbered(written), none, operands)

    def _operand(self, action: AppliedInstruction, place: IntFlag, rows: RowIndex, count: int) -> Operand:
        of, numbers = self.program.machine.rows_at(place), numbered(rows)
        before, after = (np.array(action.loaded(each.memories, place, rows)) for each in self._both)
        if action.is_shared(place):
            numbers, before, after = (np.broadcast_to(each, (count, *each.shape)) for each in (numbers, before, after))
        return Operand(of.memory, numbers, before, after, of.operand == "a")

    def _keep(self, change: Change, instruction: DecodedInstruction) -> None:
        """Of an instruction that has been executed, the rows that it has made otherwise."""
        before, after = (self._made(each, change) for each in self._both)
        own = np.flatnonzero((before != after).any(axis=1))
        if not len(own):
            return
        queue, tile = self.program.machine.queue, None
        if queue is not None and instruction.reads & queue.used:
            number, weights = self._both[0].tile, [each.memories.tiles[each.tile] for each in self._both]
            tile = Tile(number, *(map(np.array, weights) if self.program.written_tiles else weights))
        operands = [operand.only(own) for operand in change.operands]
        places, rows = change.places[own], change.rows[own]
        self.changes.append(replace(change, places=places, rows=rows, values=before[own], operands=operands, tile=tile))

    def _made(self, of: Interpreter, change: Change) -> AnyArray:
        if change.memory != TILES:
            return of.memories[change.memory][change.rows]
        return of.memories.tiles.reshape(-1, self.program.target.mxu)[change.rows]
