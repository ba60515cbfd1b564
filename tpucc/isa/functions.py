"""What `vector` and `pool` compute: the functions, and one row for each of them.

A function is added here and nowhere else: a member of `Function`, and its row in `FUNCTIONS`. The assembler, the verifier, both simulators,
the clock and the reference ask the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.arithmetic import Block, average, centred, lookup, rounded
from tpucc.isa.formats import format_of
from tpucc.isa.record import Flag, Place, one_row_each
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int8, Int32

_UNREAD: Int8 = np.zeros((0, 0), np.int8)
_NO_SUMS: Int32 = np.zeros((1, 1), np.int32)
_NO_BLOCK = np.void(b"")


@dataclass(frozen=True, eq=False, slots=True)
class Operands:
    """What an instruction has read, for its meaning: rows of values [M, mxu], [M, 1] where lane 0 stands for all.

    Sums that it doesn't read count as 0; other things that it doesn't read are empty, so that computing with them raises.
    """

    flags: Flag
    a: DeviceInts = field(default_factory=lambda: _UNREAD)
    """The first source: rows of the unified buffer or of host memory; windows of rows [M, W, mxu]."""
    b: DeviceInts = field(default_factory=lambda: _UNREAD)
    sums: Int32 = field(default_factory=lambda: _NO_SUMS)
    tile: Int8 = field(default_factory=lambda: _UNREAD)
    block: Block = _NO_BLOCK

    @property
    def format(self) -> DeviceFormat:
        """The integers that the values are."""
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
        """Real results as the values to be written: with the zero point, clamped, through the table, as the block says."""
        return rounded(real, self.block, self.format)


Meaning = Callable[[Operands], AnyArray]
"""From what an instruction reads to what it writes, row by row the same number of rows."""


class Function(IntEnum):
    """What a `vector` or `pool` instruction computes."""

    COPY = 0
    TABLE = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    MAX = 5
    AVERAGE = 6


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function: what it reads, what it means in words and as computation. `pool` has those that read windows, `vector` all others."""

    function: Function
    reads: Place
    summary: str
    meaning: Meaning


_PAIR = Place.UB | Place.UB2 | Place.BLOCK

FUNCTIONS = one_row_each(
    "FUNCTIONS (tpucc/isa/functions.py)",
    Function,
    (
        FunctionSpec(Function.COPY, Place.UB, "the rows as they are", lambda x: x.a),
        FunctionSpec(Function.TABLE, Place.UB | Place.BLOCK, "each value's entry in the table", lambda x: lookup(x.a, x.block, x.format)),
        FunctionSpec(Function.ADD, _PAIR, "the sum of two rows", lambda x: x.rounded(x.scaled_a + x.scaled_b)),
        FunctionSpec(Function.SUBTRACT, _PAIR, "the difference of two rows", lambda x: x.rounded(x.scaled_a - x.scaled_b)),
        FunctionSpec(Function.MULTIPLY, _PAIR, "the product of two rows, value by value", lambda x: x.rounded(_product(x))),
        FunctionSpec(Function.MAX, Place.WINDOWS, "the largest of each window", lambda x: x.a.max(axis=1)),
        FunctionSpec(Function.AVERAGE, Place.WINDOWS | Place.BLOCK, "the mean of each window", lambda x: average(x.a, x.block, x.format)),
    ),
    lambda row: row.function,
)


def _product(x: Operands) -> Float32:
    """`scale_a · ((a − zero_a) · (b − zero_b))`, in float32."""
    product: Float32 = x.block["scale_a"] * (centred(x.a, x.block["zero_a"]) * centred(x.b, x.block["zero_b"]))
    return product


def functions(windows: bool) -> tuple[Function, ...]:
    """The functions of `pool`, which reads windows, or of `vector`."""
    return tuple(function for function, row in FUNCTIONS.items() if bool(row.reads & Place.WINDOWS) is windows)
