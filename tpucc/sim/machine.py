"""The machine's memories, the rows that a walk visits in them, and one instruction applied to them by its row of `SPECS`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.formats import format_of
from tpucc.isa.functions import Meaning, Operands
from tpucc.isa.instructions import SPECS, Flag, Instruction, Place
from tpucc.isa.program import Program
from tpucc.isa.record import OPERAND_OF
from tpucc.numerics import AnyArray, DeviceInts, Int8, Int16, Int32, Int64

Rows = slice | Int64
"""Rows of a memory, as an index: a slice where the walk is regular (reading makes no copy), else the row numbers."""


@dataclass(frozen=True, eq=False, slots=True)
class Machine:
    """Host memory [rows, mxu], unified buffer [rows, mxu], accumulators [rows, mxu] and the tiles of weight memory [tiles, mxu, mxu].

    The tiles are the program's own array, which is never written, unless it has tiles to be written.
    """

    host: Int8
    ub: Int8
    accumulators: Int32
    tiles: Int8

    @classmethod
    def of(cls, program: Program) -> Machine:
        """Cleared memories of the program's sizes, the constants in their places in host memory."""
        target = program.target
        machine = cls(
            np.zeros((program.host_rows, target.mxu), np.int8),
            np.zeros((target.unified_buffer_rows, target.mxu), np.int8),
            np.zeros((target.accumulator_rows, target.mxu), np.int32),
            _tiles(program),
        )
        first = 0
        for buffer in program.host:
            if buffer.kind == "constant":
                machine.host[buffer.start : buffer.start + buffer.rows] = program.constants[first : first + buffer.rows]
                first += buffer.rows
        return machine

    def write_tile(self, tile: int, rows: Rows) -> None:
        """Puts rows of host memory into the first rows of a tile; its other rows become zero."""
        values = self.host[rows]
        self.tiles[tile, : len(values)], self.tiles[tile, len(values) :] = values, 0

    def load(self, rows: Rows, values: DeviceFormat, lanes: slice = slice(None)) -> DeviceInts:
        """The values of rows of the unified buffer; of 16-bit values `rows` are those of the low bytes."""
        ub = self.ub[:, lanes]
        return joined(ub[rows], ub[after(rows)]) if values.bytes_per_value > 1 else ub[rows]

    def store(self, rows: Rows, values: DeviceInts, lanes: slice = slice(None)) -> None:
        """Puts values into rows of the unified buffer: int16 ones into their low and high bytes."""
        ub = self.ub[:, lanes]
        if values.dtype == np.int16:
            ub[rows], ub[after(rows)] = halves(values)
        else:
            ub[rows] = values


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


def after(rows: Rows) -> Rows:
    """The row after each: that of the high bytes."""
    return slice(rows.start + 1, rows.stop + 1, rows.step) if isinstance(rows, slice) else rows + 1


def walk(start: int, outer: int, inner: int, pitch: int, stride: int) -> Rows:
    """The rows `start + o * pitch + i * stride`, o below `outer` and i below `inner`, in that order."""
    if outer * inner == 1:
        return slice(start, start + 1)
    if inner == 1:
        outer, inner, pitch, stride = 1, outer, 0, pitch
    if stride > 0 and (outer == 1 or pitch == inner * stride):
        return slice(start, start + outer * inner * stride, stride)
    steps = np.arange(outer, dtype=np.int64)[:, None] * pitch + np.arange(inner, dtype=np.int64) * stride
    return (start + steps).reshape(-1)


def numbered(rows: Rows) -> Int64:
    """The numbers of rows, however they are given."""
    return np.arange(rows.start, rows.stop, rows.step or 1, dtype=np.int64) if isinstance(rows, slice) else rows


def sources_of(place: Place, rows: Rows, places: Int64) -> Int64:
    """The rows of an operand that the rows of the result at `places` of the walk are computed from."""
    return numbered(rows) if place in SHARED else numbered(rows)[places]


def operand(instruction: Instruction, field: str) -> Rows:
    """The rows that an instruction visits through `ub`, `ub2` or `dest`; those of a pool's windows are in `windows`.

    Of 16-bit values they are the rows of the low bytes.
    """
    values, width = instruction.values, format_of(instruction.flags).bytes_per_value
    outer, inner = values.get("outer", 1), values["inner"]
    return walk(values[field], outer, inner, values.get(f"{field}_pitch", 0), values.get(f"{field}_stride", width))


def accumulator_rows(instruction: Instruction) -> slice:
    """The accumulator rows of a multiply or an activate."""
    first = instruction["acc"]
    return slice(first, first + instruction.values.get("outer", 1) * instruction["inner"])


def host_rows(instruction: Instruction) -> slice:
    """The rows of host memory that a transfer moves."""
    return slice(instruction["host"], instruction["host"] + instruction["inner"])


def windows(instruction: Instruction) -> Int64:
    """The rows of a pool's windows: [rows of the result, rows of a window]."""
    values = instruction.values
    steps = _numbers(values["outer"], values["inner"], values["ub_pitch"], values["ub_stride"])
    window = _numbers(values["window_outer"], values["window_inner"], values["ub2_pitch"], values["ub2_stride"])
    return values["ub"] + steps[:, None] + window


def kernel(instruction: Instruction) -> Rows:
    """The rows of weights of a pool's windows."""
    values, width = instruction.values, format_of(instruction.flags).bytes_per_value
    return walk(values["ub2"], 1, values["window_outer"] * values["window_inner"], 0, width)


def _numbers(outer: int, inner: int, pitch: int, stride: int) -> Int64:
    return (np.arange(outer, dtype=np.int64)[:, None] * pitch + np.arange(inner, dtype=np.int64) * stride).reshape(-1)


OPERANDS = {Place.UB: "a", Place.WINDOWS: "a", Place.HOST: "a", Place.UB2: "b", Place.KERNEL: "b", Place.ACC: "sums"}
"""Which of the `Operands` the rows of each place are."""
SPLATS = {Place.UB: Flag.SPLAT, Place.UB2: Flag.SPLAT2}
SHARED = Place.KERNEL
"""Places whose rows every row of the result is computed from; of the others it has rows of its own."""


@dataclass(frozen=True, eq=False, slots=True)
class Applied:
    """An instruction that moves or computes rows, with all that it uses; or several that are the same as one after the other.

    `constants` are the tile and the parameter block, by their names in `Operands`, if it reads them.
    """

    meaning: Meaning
    flags: Flag
    block_index: int
    constants: dict[str, Any]
    reads: tuple[tuple[Place, Rows], ...]
    writes: tuple[Place, Rows]

    def only(self, places: Int64) -> Applied:
        """The same for some of the rows that it writes: their places in the walk, ascending. Each row is computed from its own sources."""
        place, rows = self.writes
        reads = tuple((source, sources_of(source, read, places)) for source, read in self.reads)
        return replace(self, reads=reads, writes=(place, numbered(rows)[places]))

    def run(self, machine: Machine) -> None:
        """All source rows are read before any row is written."""
        values: dict[str, Any] = {OPERANDS[place]: self.loaded(machine, place, rows) for place, rows in self.reads}
        _store(machine, *self.writes, self.meaning(Operands(self.flags, **values, **self.constants)))

    def loaded(self, machine: Machine, place: Place, rows: Rows) -> AnyArray:
        """The values of rows; lane 0 alone where it stands for all."""
        if place is Place.ACC:
            return machine.accumulators[rows]
        if place is Place.HOST:
            return machine.host[rows]
        splat = self.flags & SPLATS.get(place, 0)
        return machine.load(rows, format_of(self.flags), slice(0, 1) if splat else slice(None))


def _store(machine: Machine, place: Place, rows: Rows, values: AnyArray) -> None:
    match place:
        case Place.ACC:
            machine.accumulators[rows] = values
        case Place.HOST:
            machine.host[rows] = values
        case Place.DEST:
            machine.store(rows, values)
        case _:
            raise TypeError(f"{place!r} isn't a place to store rows")


def applied(program: Program, instruction: Instruction, tile: Int8 | None, block: int) -> Applied | None:
    """The effect of an instruction on rows of the memories when `tile` (None before the first) and `block` are in use; None if it neither
    moves nor computes any."""
    reads = instruction.reads
    meaning = SPECS[instruction.opcode].meaning_of(instruction.values.get("function", 0))
    if meaning is None:
        return None
    constants: dict[str, Any] = {}
    if reads & Place.TILE:
        constants["tile"] = tile
    if reads & Place.BLOCK:
        constants["block"] = program.blocks[block]
    sources = tuple((place, _rows(instruction, place)) for place in OPERANDS if reads & place)
    target = written(instruction)
    assert target is not None  # what has a meaning writes rows
    return Applied(meaning, instruction.flags, block if constants else -1, constants, sources, target)


def written(instruction: Instruction) -> tuple[Place, Rows] | None:
    """The place that an instruction writes rows of, and these rows; None if it writes none."""
    return next(((place, _rows(instruction, place)) for place in OPERAND_OF if instruction.writes & place), None)


def _rows(instruction: Instruction, place: Place) -> Rows:
    if place is Place.ACC:
        return accumulator_rows(instruction)
    if place is Place.HOST:
        return host_rows(instruction)
    if place is Place.WINDOWS:
        return windows(instruction)
    if place is Place.KERNEL:
        return kernel(instruction)
    return operand(instruction, OPERAND_OF[place])
