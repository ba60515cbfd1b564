"""A matrix product that replaces many multiplies, and one pass over its result that replaces the activates after them.

Column blocks with the same input rows lie side by side in one product [M, K] @ [K, N]. Its result is float32(acc + bias) for the exact
integers acc and bias. Parts and bias are summed in float32 where that rounds once:

- of one part, product and bias are exact in float32, and their sum rounds once;
- of two parts, the second one plus the bias is below 2^24 and exact, and adding the first rounds once.

Else, and where another backend has multiplied integers, they are summed in int32, and the sum is converted. That rounds once, too, so that
both ways agree in every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.dtypes import DeviceFormat
from tpucc.machines.v1.functions import ParameterBlock, activate
from tpucc.numerics import EXACT, DeviceInts, Float32, Int32, Int64
from tpucc.sim.fast.walks import LookUp, RowsOrGrid
from tpucc.sim.fast.weights import Part, Weights
from tpucc.sim.memories import RowIndex


@dataclass(frozen=True, slots=True)
class Source:
    """The unified-buffer rows that one level of the product reads; `places` are the same rows."""

    rows: RowIndex
    places: RowsOrGrid
    values: DeviceFormat
    unsigned: bool


@dataclass(frozen=True, eq=False, slots=True)
class Activation:
    """An activate of one column block: the rows that it writes, and the parameter block.

    `tail` are the lanes past the used columns [mxu - used]: they have no weights, so they are the same in every row. `places` are the
    same rows as `dest`. `look_up` is the block's table on 8-bit values, if it has one.
    """

    dest: RowIndex
    places: RowsOrGrid
    block: ParameterBlock
    to: DeviceFormat
    tail: DeviceInts
    look_up: LookUp | None


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """One column block of the product: its used columns, its accumulators if they are needed later, and its activate if it has one."""

    columns: slice
    accumulators: slice | None
    activation: Activation | None


@dataclass(frozen=True, eq=False, slots=True)
class RequantisedColumns:
    """Consecutive columns that requantise at once. `zero`, `low` and `high` are numbers, or have one for each column."""

    columns: slice
    multiplier: Float32
    zero: int | Int32
    low: int | Int32
    high: int | Int32


class Scratch:
    """Float32 memory that products share, for the inputs of one part at a time and for results side by side."""

    def __init__(self) -> None:
        self._inputs = np.empty(0, np.float32)
        self._results = np.empty(0, np.float32)

    def reserve(self, inputs: int, results: int) -> None:
        """Makes room for so many numbers of inputs and results. The old contents are lost."""
        if inputs > self._inputs.size:
            self._inputs = np.empty(inputs, np.float32)
        if results > self._results.size:
            self._results = np.empty(results, np.float32)

    def inputs(self, rows: int, columns: int) -> Float32:
        return self._inputs[: rows * columns].reshape(rows, columns)

    def result(self, offset: int, rows: int, columns: int) -> Float32:
        return self._results[offset : offset + rows * columns].reshape(rows, columns)


@dataclass(frozen=True, eq=False, slots=True)
class JoinedProduct:
    """`rows` of every source times the weights. `offset` is where the results begin in the scratch memory."""

    rows: int
    sources: tuple[Source, ...]
    weights: Weights
    outputs: tuple[Output, ...]
    bias: Int32
    passes: tuple[RequantisedColumns, ...]
    rounds_once: bool
    """Whether the parts and the bias may be summed in float32."""
    offset: int

    @property
    def narrow(self) -> bool:
        """Whether all results are 8-bit values, so that one conversion makes them."""
        return all(output.activation is not None and output.activation.to.bytes_per_value == 1 for output in self.outputs)

    @property
    def inputs_size(self) -> int:
        """Numbers of scratch memory for the inputs of its deepest part."""
        return self.rows * max((len(part.matrix) for part in self.weights.parts), default=sum(self.weights.depths))

    @property
    def results_size(self) -> int:
        return self.rows * len(self.bias) * max(1, len(self.weights.parts))


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
