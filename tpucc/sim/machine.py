"""The machine's memories, and the rows that a walk visits in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.formats import format_of
from tpucc.isa.instructions import Instruction
from tpucc.isa.program import Program
from tpucc.numerics import DeviceInts, Int8, Int16, Int32, Int64

Rows = slice | Int64
"""Rows of a memory, as an index: a slice where the walk is regular (reading makes no copy), else the row numbers."""


@dataclass(frozen=True, eq=False, slots=True)
class Machine:
    """Host memory [rows, mxu], unified buffer [rows, mxu] and accumulators [rows, mxu]."""

    host: Int8
    ub: Int8
    accumulators: Int32

    @classmethod
    def of(cls, program: Program) -> Machine:
        """Cleared memories of the program's sizes, the constants in their places in host memory."""
        target = program.target
        machine = cls(
            np.zeros((program.host_rows, target.mxu), np.int8),
            np.zeros((target.unified_buffer_rows, target.mxu), np.int8),
            np.zeros((target.accumulator_rows, target.mxu), np.int32),
        )
        first = 0
        for buffer in program.host:
            if buffer.kind == "constant":
                machine.host[buffer.start : buffer.start + buffer.rows] = program.constants[first : first + buffer.rows]
                first += buffer.rows
        return machine

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


def _numbers(outer: int, inner: int, pitch: int, stride: int) -> Int64:
    return (np.arange(outer, dtype=np.int64)[:, None] * pitch + np.arange(inner, dtype=np.int64) * stride).reshape(-1)
