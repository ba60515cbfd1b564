"""The computations of the units: products, what a parameter block says, and a row for each function of `vector` and `pool`.

A function is added here and nowhere else: a member of `Function`, and its row in `FUNCTIONS`. The assembler, the verifier, both simulators
and the page of instructions ask the row. The reference of the layers doesn't: it is another answer, which this one is compared with. No
lane depends on another one. Products and the sums of windows are exact. All else is float32, step by step in the order in which
`parameter_block_dtype` (`machine.py`) writes it. The rows of `SPECS` (`instructions.py`) call `matrix_product` and `activate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import I8, DeviceFormat
from tpucc.machine.instruction import FunctionSpec, one_row_each
from tpucc.machines.v1.formats import encoding_of, format_of
from tpucc.machines.v1.places import Flag, Place
from tpucc.numerics import DeviceInts, Float32, Int8, Int32, interpolate, requantise, saturate

InputRows = npt.NDArray[np.int8 | np.uint8 | np.int16 | np.uint16]
"""The rows that a multiply reads."""
ParameterBlock = np.void
"""One parameter block: a record of `parameter_block_dtype`."""


def matrix_product(rows: InputRows, tile: Int8) -> Int32:
    """`rows` [M, mxu] times `tile` [mxu, mxu]. float64 is exact: no sum of products of a tile comes near 2^53.

    The rows and columns of the tile after its last weights are zero, and so is what they add: they are left out.
    """
    depth, width = used_size(tile)
    product = np.zeros((len(rows), tile.shape[1]), np.int32)
    product[:, :width] = rows[:, :depth].astype(np.float64) @ tile[:depth, :width].astype(np.float64)
    return product


def used_size(tile: Int8) -> tuple[int, int]:
    """Rows and columns of a tile up to its last weight that isn't zero."""
    rows, columns = np.flatnonzero(tile.any(axis=1)), np.flatnonzero(tile.any(axis=0))
    return (int(rows[-1]) + 1, int(columns[-1]) + 1) if len(rows) else (0, 0)


def unsigned(rows: DeviceInts) -> InputRows:
    """The rows with their bits as unsigned integers."""
    return rows.view(np.uint16) if rows.dtype == np.int16 else rows.view(np.uint8)


def activate(accumulators: Int32, block: ParameterBlock, to: DeviceFormat = I8) -> DeviceInts:
    """Accumulators [M, lanes] plus bias, requantised, clamped, and looked up in the table if there is one. There may be fewer lanes than
    mxu."""
    lanes = accumulators.shape[-1]
    biased = accumulators + block["bias"][:lanes]
    values = requantise(biased, block["multiplier"][:lanes], int(block["zero"]), int(block["low"]), int(block["high"]), to)
    return looked_up(values, block, to)


def centred(a: DeviceInts, zero: np.int32) -> Float32:
    """`a - zero` as float32, which holds it exactly."""
    return a.astype(np.float32) - np.float32(zero)


def rounded(real: Float32, block: ParameterBlock, to: DeviceFormat) -> DeviceInts:
    """`real` rounded, plus the block's zero point, clamped, and looked up in the table if there is one."""
    return looked_up(saturate(np.rint(real), int(block["zero"]), int(block["low"]), int(block["high"]), to), block, to)


def lookup(a: DeviceInts, block: ParameterBlock, of: DeviceFormat) -> DeviceInts:
    """`table[a + 128]`; for 16-bit values the function that `points` give."""
    table: DeviceInts = block[encoding_of(of).table]
    return np.take(table, a.view(np.uint8) ^ 0x80) if of.has_exact_tables else interpolate(a, table, of)


def looked_up(values: DeviceInts, block: ParameterBlock, of: DeviceFormat) -> DeviceInts:
    """`values` looked up in the block's table; `values` itself where the block has none."""
    return lookup(values, block, of) if block["has_table"] else values


def average(window: DeviceInts, block: ParameterBlock, to: DeviceFormat) -> DeviceInts:
    """The mean of `window` [M, W, mxu] over its rows; the block's `scale_a` contains 1 / W."""
    total = window.sum(axis=1, dtype=np.int64) - int(block["zero_a"]) * window.shape[1]
    mean = np.rint(block["scale_a"] * total.astype(np.float32))
    return saturate(mean, int(block["zero"]), int(block["low"]), int(block["high"]), to)


def weighted(window: DeviceInts, weights: DeviceInts, block: ParameterBlock, to: DeviceFormat) -> DeviceInts:
    """The rows of `window` [M, W, lanes] times the rows of `weights` [W, lanes], value by value, summed over W; then as `activate`."""
    sums = np.zeros((len(window), window.shape[-1]), np.int32)
    for position in range(window.shape[1]):
        sums += np.multiply(window[:, position], weights[position], dtype=np.int32)
    return activate(sums, block, to)


_UNREAD: Int8 = np.zeros((0, 0), np.int8)
_NO_SUMS: Int32 = np.zeros((1, 1), np.int32)
_NO_BLOCK = np.void(b"")


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """The operands that an instruction computes with: rows [M, mxu], or [M, 1] where lane 0 stands for all.

    Sums that the instruction doesn't read are 0; other operands that it doesn't read are empty, so that computing with them raises.
    """

    flags: Flag
    a: DeviceInts = field(default_factory=lambda: _UNREAD)
    """The first source: rows of the unified buffer or of host memory; windows of rows [M, W, mxu]."""
    b: DeviceInts = field(default_factory=lambda: _UNREAD)
    """The second source, or the rows of weights of a window [W, mxu]."""
    sums: Int32 = field(default_factory=lambda: _NO_SUMS)
    tile: Int8 = field(default_factory=lambda: _UNREAD)
    block: ParameterBlock = _NO_BLOCK

    @property
    def format(self) -> DeviceFormat:
        """The integer format of the values."""
        return format_of(self.flags)

    @property
    def scaled_a(self) -> Float32:
        """`scale_a · (a − zero_a)`, in float32."""
        scaled: Float32 = self.block["scale_a"] * centred(self.a, self.block["zero_a"])
        return scaled

    @property
    def scaled_b(self) -> Float32:
        """`scale_b · (b − zero_b)`, in float32."""
        scaled: Float32 = self.block["scale_b"] * centred(self.b, self.block["zero_b"])
        return scaled

    def rounded(self, real: Float32) -> DeviceInts:
        """Real results as integers: rounded, with the block's zero point, clamped, and looked up in its table if it has one."""
        return rounded(real, self.block, self.format)


class Function(IntEnum):
    """The function of a `vector` or `pool` instruction."""

    COPY = 0
    TABLE = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    MAX = 5
    AVERAGE = 6
    WEIGHTED = 7


_PAIR = Place.UB | Place.UB2 | Place.BLOCK

FUNCTIONS = one_row_each(
    "FUNCTIONS (tpucc/machines/v1/functions.py)",
    Function,
    (
        FunctionSpec(Function.COPY, Place.UB, "the rows as they are", lambda x: x.a),
        FunctionSpec(Function.TABLE, Place.UB | Place.BLOCK, "each value's entry in the table", lambda x: lookup(x.a, x.block, x.format)),
        FunctionSpec(Function.ADD, _PAIR, "the sum of two rows", lambda x: x.rounded(x.scaled_a + x.scaled_b)),
        FunctionSpec(Function.SUBTRACT, _PAIR, "the difference of two rows", lambda x: x.rounded(x.scaled_a - x.scaled_b)),
        FunctionSpec(Function.MULTIPLY, _PAIR, "the product of two rows, value by value", lambda x: x.rounded(_product(x))),
        FunctionSpec(Function.MAX, Place.WINDOWS, "the largest of each window", lambda x: x.a.max(axis=1)),
        FunctionSpec(Function.AVERAGE, Place.WINDOWS | Place.BLOCK, "the mean of each window", lambda x: average(x.a, x.block, x.format)),
        FunctionSpec(
            Function.WEIGHTED,
            Place.WINDOWS | Place.KERNEL | Place.BLOCK,
            "the sum of each window's rows times rows of weights, lane by lane, requantised",
            lambda x: weighted(x.a, x.b, x.block, x.format),
        ),
    ),
    lambda row: Function(row.function),
)


def _product(x: Operands) -> Float32:
    """`scale_a · ((a − zero_a) · (b − zero_b))`, in float32."""
    product: Float32 = x.block["scale_a"] * (centred(x.a, x.block["zero_a"]) * centred(x.b, x.block["zero_b"]))
    return product


def functions(windows: bool) -> Mapping[IntEnum, FunctionSpec]:
    """The functions of `pool`, which reads windows, or of `vector`."""
    return MappingProxyType({function: row for function, row in FUNCTIONS.items() if bool(row.reads & Place.WINDOWS) is windows})
