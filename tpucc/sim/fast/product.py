"""A matrix product that replaces many multiplies, and one pass over its result that replaces the activates after them.

Column blocks with the same input rows lie side by side in one product [M, K] @ [K, N]. Its result is float32(acc + bias) for the exact
integers acc and bias. Parts and bias are summed in float32 where that rounds once:

- of one part, product and bias are exact in float32, and their sum rounds once;
- of two parts, the second one plus the bias is below 2^24 and exact, and adding the first rounds once.

Else, and where another backend has multiplied integers, they are summed in int32, and the sum is converted. That rounds once, too, so that
both ways agree in every bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.machines.v1.functions import ParameterBlock, activate
from tpucc.numerics import EXACT, AnyArray, DeviceInts, Float32, Int8, Int32, Int64
from tpucc.sim.fast.weights import Part, Weights
from tpucc.sim.memories import RowIndex


@dataclass(frozen=True, slots=True)
class Source:
    """The unified-buffer rows that one level of the product reads."""

    rows: RowIndex
    values: DeviceFormat
    unsigned: bool


@dataclass(frozen=True, eq=False, slots=True)
class Activation:
    """An activate of one column block: the rows that it writes, and the parameter block.

    `tail` are the lanes past the used columns [mxu - used]: they have no weights, so they are the same in every row.
    """

    dest: RowIndex
    block: ParameterBlock
    to: DeviceFormat
    tail: DeviceInts


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """One column block of the product: its used columns, its accumulators if they are needed later, and its activate if it has one."""

    columns: slice
    accumulators: slice | None
    activation: Activation | None


@dataclass(frozen=True, eq=False, slots=True)
class Requantisation:
    """The numbers that requantise sums: float32, one for each column, or one for all where they are alike."""

    multiplier: Float32
    zero: Float32
    low: Float32
    high: Float32

    @classmethod
    def of(cls, *numbers: AnyArray) -> Requantisation:
        """From numbers of columns, or numbers for all of them."""
        return cls(*(np.asarray(np.ravel(each)[0] if len(np.unique(each)) == 1 else each, np.float32) for each in numbers))

    def apply(self, sums: Float32) -> None:
        """As `numerics.requantise`, in place, of sums that are float32 already."""
        np.multiply(sums, self.multiplier, out=sums)
        self.round(sums)

    def round(self, real: Float32) -> None:
        """Rounds in place, adds the zero point, and clamps. What isn't clamped is so small that the sum is exact."""
        np.rint(real, out=real)
        np.add(real, self.zero, out=real)
        if self.low.ndim or self.high.ndim:  # `clip` is five times as slow with bounds for each column, and four times as fast else
            np.maximum(real, self.low, out=real)
            np.minimum(real, self.high, out=real)
        else:
            real.clip(self.low, self.high, out=real)


class Scratch:
    """Memory that steps share: for the inputs of one part at a time, for results side by side, and for entries of tables.

    It grows as steps are bound. A step that was bound before keeps what it has.
    """

    def __init__(self) -> None:
        self._inputs = self._results = np.empty(0, np.float32)
        self._entries = np.empty(0, "<i8")

    def inputs(self, rows: int, columns: int) -> Float32:
        self._inputs = _grown(self._inputs, rows * columns)
        return self._inputs[: rows * columns].reshape(rows, columns)

    def results(self, offset: int, size: int) -> Float32:
        """So many numbers from `offset` on, where no result is that is still needed."""
        self._results = _grown(self._results, offset + size)
        return self._results[offset : offset + size]

    def entries(self, shape: tuple[int, ...]) -> tuple[Int64, Int8, Int8]:
        """Numbers of entries below 65,536, and views of the two bytes that each consists of, the high one first."""
        size = math.prod(shape)
        self._entries = _grown(self._entries, size)
        entries = self._entries[:size].reshape(shape)
        digits = entries.view(np.int8).reshape(*shape, 8)
        return entries, digits[..., 1], digits[..., 0]


def _grown(memory: AnyArray, size: int) -> AnyArray:
    """`memory`, or zeros in its place if it is too small: memory of the next power of two, so that it grows seldom."""
    return memory if size <= memory.size else np.zeros(1 << (size - 1).bit_length(), memory.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class JoinedProduct:
    """`rows` of every source times the weights. `offset` is where the results begin in the scratch memory."""

    rows: int
    sources: tuple[Source, ...]
    weights: Weights
    outputs: tuple[Output, ...]
    bias: Int32
    requantisation: Requantisation
    rounds_once: bool
    """Whether the parts and the bias may be summed in float32."""
    offset: int

    @property
    def scratch_size(self) -> int:
        """Numbers of scratch memory for its results, and for an image before it is multiplied, which is smaller than the inputs."""
        return self.rows * (len(self.bias) * max(1, len(self.weights.parts)) + sum(self.weights.depths))


def rounds_once(parts: Sequence[Part], bias: Int32) -> bool:
    """Whether the sum of the parts and the bias rounds once in float32: see the module's docstring."""
    if any(part.matrix.dtype == np.float64 for part in parts):
        return False
    if len(parts) == 2:
        return bool((parts[1].bound + np.abs(bias.astype(np.int64)) < EXACT).all())
    return len(parts) == 1 and bool((bias.astype(np.float32).astype(np.float64) == bias).all())


def tail_lanes(block: ParameterBlock, used: int, to: DeviceFormat) -> DeviceInts:
    """The results of an activate in the lanes without weights: [mxu - used]."""
    bias: Int64 = block["bias"]
    return activate(np.zeros((1, len(bias)), np.int32), block, to)[0, used:]
