"""The memories of a machine, the rows that a walk visits in them, and one instruction applied to them by its row of the machine's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Any, assert_never

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.program import Program
from tpucc.machine.instruction import ComputeRows, DecodedInstruction
from tpucc.machine.machine import Machine
from tpucc.machine.parts import NOWHERE, AccessPattern, Contents, RowPlace
from tpucc.numerics import AnyArray, DeviceInts, Int8, Int16, Int64

RowIndex = slice | Int64
"""Rows of a memory, as an index: a slice where the walk is regular (reading makes no copy), else the row numbers."""


@dataclass(frozen=True, eq=False, slots=True)
class Memories:
    """The rows [rows, mxu] of each memory, by its name; those of the memory of buffers again; and the tiles [tiles, mxu, mxu].

    The tiles are the program's own array, which is never written, unless it has tiles to be written.
    """

    rows: Mapping[str, AnyArray]
    buffers: Int8
    tiles: Int8

    @classmethod
    def of(cls, program: Program) -> Memories:
        """Cleared memories of the program's sizes, the constants in their places in the program's buffers."""
        machine, target = program.machine, program.target
        sizes = {each.name: program.host_rows if each.contents is Contents.BUFFERS else each.size(target) for each in machine.memories}
        rows = {each.name: np.zeros((sizes[each.name], target.mxu), each.dtype) for each in machine.memories}
        held = machine.holding(Contents.BUFFERS)
        memories = cls(rows, rows[held.name] if held is not None else np.zeros((program.host_rows, target.mxu), np.int8), _tiles(program))
        first = 0
        for buffer in program.host:
            if buffer.kind == "constant":
                memories.buffers[buffer.start : buffer.end] = program.constants[first : first + buffer.rows]
                first += buffer.rows
        return memories

    def __getitem__(self, name: str) -> AnyArray:
        return self.rows[name]

    def write_tile(self, tile: int, values: Int8) -> None:
        """Puts rows into the first rows of a tile; its other rows become zero."""
        self.tiles[tile, : len(values)], self.tiles[tile, len(values) :] = values, 0

    def load(self, memory: str, rows: RowIndex, values: DeviceFormat, lanes: slice = slice(None)) -> AnyArray:
        """The values of rows. Where 16-bit values lie in a memory of bytes, `rows` are the rows of the low bytes."""
        held = self.rows[memory][:, lanes]
        return joined(held[rows], held[after(rows)]) if values.bytes_per_value > 1 and held.itemsize == 1 else held[rows]

    def store(self, memory: str, rows: RowIndex, values: AnyArray, lanes: slice = slice(None)) -> None:
        """Puts values into rows: 16-bit ones into the low and the high bytes of a memory of bytes."""
        held = self.rows[memory][:, lanes]
        if values.dtype == np.int16 and held.itemsize == 1:
            held[rows], held[after(rows)] = halves(values)
        else:
            held[rows] = values


def _tiles(program: Program) -> Int8:
    """The tiles of weight memory before the program starts."""
    if not program.written_tiles:
        return program.tiles
    empty = np.zeros((program.written_tiles, *program.tiles.shape[1:]), np.int8)
    return np.concatenate([program.tiles, empty])


def joined(low: Int8, high: Int8) -> Int16:
    """The 16-bit values with these bytes."""
    values: Int16 = (high.astype(np.int16) << 8) | low.view(np.uint8)
    return values


def halves(values: DeviceInts) -> tuple[Int8, Int8]:
    """The low and the high bytes of 16-bit values."""
    return values.astype(np.uint8).view(np.int8), (values >> 8).astype(np.int8)


def after(rows: RowIndex) -> RowIndex:
    """The row after each row: the row of the high bytes."""
    return slice(rows.start + 1, rows.stop + 1, rows.step) if isinstance(rows, slice) else rows + 1


def walk(start: int, outer: int, inner: int, pitch: int, stride: int) -> RowIndex:
    """The rows `start + o * pitch + i * stride`, o below `outer` and i below `inner`, in that order."""
    if outer * inner == 1:
        return slice(start, start + 1)
    if inner == 1:
        outer, inner, pitch, stride = 1, outer, 0, pitch
    if stride > 0 and (outer == 1 or pitch == inner * stride):
        return slice(start, start + outer * inner * stride, stride)
    return start + offsets(outer, inner, pitch, stride)


def numbered(rows: RowIndex) -> Int64:
    """The numbers of rows, however they are given."""
    return np.arange(rows.start, rows.stop, rows.step or 1, dtype=np.int64) if isinstance(rows, slice) else rows


def offsets(outer: int, inner: int, pitch: int, stride: int) -> Int64:
    """The rows of a walk from row 0, in the order of the walk."""
    return (np.arange(outer, dtype=np.int64)[:, None] * pitch + np.arange(inner, dtype=np.int64) * stride).reshape(-1)


@dataclass(frozen=True, eq=False, slots=True)
class AppliedInstruction:
    """An instruction that moves or computes rows, with its operands.

    `constants` has the queue's entry, the parameter block and the expression, if the instruction reads them, by the names of `compute`'s
    operands. An instruction that pushes an entry of the queue writes no rows.
    """

    machine: Machine
    compute: ComputeRows
    flags: IntFlag
    constants: dict[str, Any]
    reads: tuple[tuple[IntFlag, RowIndex], ...]
    writes: tuple[IntFlag, RowIndex]

    def only(self, places: Int64) -> AppliedInstruction:
        """The instruction for some of the rows that it writes: the rows at `places` of the walk, ascending. Each row has its own
        sources."""
        place, rows = self.writes
        reads = tuple((source, self.sources(source, read, places)) for source, read in self.reads)
        return replace(self, reads=reads, writes=(place, numbered(rows)[places]))

    def sources(self, place: IntFlag, rows: RowIndex, places: Int64) -> Int64:
        """The rows of an operand that the rows of the result at `places` of the walk are computed from."""
        return numbered(rows) if self.is_shared(place) else numbered(rows)[places]

    def is_shared(self, place: IntFlag) -> bool:
        """Whether all rows of the result are computed from the same rows of an operand."""
        return self.machine.rows_at(place).pattern in (AccessPattern.KERNEL, AccessPattern.BLOCK, AccessPattern.TABLE)

    def run(self, memories: Memories) -> None:
        """All source rows are read before any row is written."""
        place, rows = self.writes
        memories.store(self.machine.rows_at(place).memory, rows, self.computed(memories))

    def computed(self, memories: Memories) -> Any:
        """What the instruction computes: rows, or an entry of the queue."""
        at = self.machine.rows_at
        values: dict[str, Any] = {at(place).operand: self.loaded(memories, place, rows) for place, rows in self.reads}
        return self.compute(self.machine.operands(self.flags, **values, **self.constants))

    def loaded(self, memories: Memories, place: IntFlag, rows: RowIndex) -> AnyArray:
        """The values of rows; lane 0 alone where it stands for all."""
        of = self.machine.rows_at(place)
        lanes = slice(0, 1) if of.splat and self.flags & of.splat else slice(None)
        return memories.load(of.memory, rows, self.machine.format_of(self.flags), lanes)

    def size(self, place: IntFlag) -> int:
        """The rows of a value at a place."""
        of_bytes = self.machine.by_memory[self.machine.rows_at(place).memory].is_of_bytes
        return self.machine.format_of(self.flags).bytes_per_value if of_bytes else 1


def applied(program: Program, instruction: DecodedInstruction, tile: Any, block: int) -> AppliedInstruction | None:
    """What an instruction computes when `tile` (None before the first) and `block` are in use, and the rows that it writes; None if it
    neither moves nor computes anything."""
    machine, reads, compute = program.machine, instruction.reads, instruction.compute
    if compute is None:
        return None
    constants: dict[str, Any] = {}
    if machine.queue is not None and reads & machine.queue.used:
        constants[machine.queue.operand] = tile
    if machine.register is not None and reads & machine.register.place:
        constants[machine.register.operand] = program.blocks[block]
    if (kind := machine.expressions) is not None:
        constants |= {"fields": {"outer": 1, **instruction.values}, "lanes": program.target.mxu}
        if reads & kind.place:
            constants[kind.operand] = kind.parse(program.expressions[instruction["index"]])
    sources = tuple((place.place, rows_of(machine, instruction, place)) for place in machine.rows_in(reads))
    return AppliedInstruction(machine, compute, instruction.flags, constants, sources, written(machine, instruction) or NO_ROWS)


NO_ROWS: tuple[IntFlag, RowIndex] = (NOWHERE, slice(0, 0))


def written(machine: Machine, instruction: DecodedInstruction) -> tuple[IntFlag, RowIndex] | None:
    """The place whose rows an instruction writes, and these rows; None where it writes none."""
    return next(((place.place, rows_of(machine, instruction, place)) for place in machine.rows_in(instruction.writes)), None)


def rows_of(machine: Machine, instruction: DecodedInstruction, place: RowPlace) -> RowIndex:
    """The rows that an instruction visits at a place; for windows [rows of the result, rows of a window]. Where 16-bit values lie in a
    memory of bytes, they are the rows of the low bytes."""
    values, first = instruction.values, instruction[place.field]
    width = machine.format_of(instruction.flags).bytes_per_value if machine.by_memory[place.memory].is_of_bytes else 1
    match place.pattern:
        case AccessPattern.DENSE:
            return slice(first, first + values.get("outer", 1) * values["inner"])
        case AccessPattern.WALK:
            pitch, stride = values.get(f"{place.field}_pitch", 0), values.get(f"{place.field}_stride", width)
            return walk(first, values.get("outer", 1), values["inner"], pitch, stride)
        case AccessPattern.WINDOWS:
            steps = offsets(values["outer"], values["inner"], values[f"{place.field}_pitch"], values[f"{place.field}_stride"])
            window = offsets(values["window_outer"], values["window_inner"], values["ub2_pitch"], values["ub2_stride"])
            return first + steps[:, None] + window
        case AccessPattern.KERNEL:
            return walk(first, 1, values["window_outer"] * values["window_inner"], 0, width)
        case AccessPattern.BLOCK:
            return slice(first, first + values["window_inner"])
        case AccessPattern.TABLE:
            return slice(first, first + values["index"])
        case _:
            assert_never(place.pattern)
