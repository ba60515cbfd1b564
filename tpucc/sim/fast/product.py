"""A matrix product that stands for many multiplies, and the activates that follow it, in one pass over its result.

Column blocks with the same input rows lie side by side in one product [M, K] @ [K, N]. Its result is float32(acc + bias) for the exact
integers acc and bias, obtained in one of four ways:

- `SINGLE`: one part. Product and bias are exact in float32; their sum rounds once.
- `PAIR`: two parts. The second one plus the bias is below 2^24 and exact; adding the first rounds once.
- `INTEGERS`: another backend has multiplied integers, and int32 sums are converted.
- `WIDE`: anything else. Parts and bias are summed in int32, and the sum is converted.

Rounding once is what the conversion of the int32 sum does, so the four agree in every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import DeviceFormat
from tpucc.machines.v1.functions import Block, activate, looked_up, unsigned
from tpucc.numerics import EXACT, AnyArray, DeviceInts, Float32, Int8, Int32, Int64, requantise_in_place
from tpucc.sim.fast.backends import SHIFT
from tpucc.sim.fast.walks import LookUp, Places, put, taken
from tpucc.sim.fast.weights import Part, Weights, spans
from tpucc.sim.memories import Memories, Rows


class Sum(Enum):
    SINGLE = "single"
    PAIR = "pair"
    WIDE = "wide"
    INTEGERS = "integers"


@dataclass(frozen=True, slots=True)
class Source:
    """The unified-buffer rows that one level of the product reads; `places` are the same rows."""

    rows: Rows
    places: Places
    values: DeviceFormat
    unsigned: bool


@dataclass(frozen=True, eq=False, slots=True)
class Activation:
    """Where and how an activate writes one column block.

    `tail` are the lanes past the used columns [mxu - used]: they have no weights, so they are the same in every row. `places` are the
    same rows as `dest`. `look_up` is the block's table on 8-bit values, if it has one.
    """

    dest: Rows
    places: Places
    block: Block
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
class Pass:
    """Consecutive columns that requantise at once. `zero`, `low` and `high` are numbers, or have one for each column."""

    columns: slice
    multiplier: Float32
    zero: int | Int32
    low: int | Int32
    high: int | Int32


class Scratch:
    """Float32 memory that the products share: inputs of one part at a time, results side by side."""

    def __init__(self) -> None:
        self._inputs = np.empty(0, np.float32)
        self._results = np.empty(0, np.float32)

    def reserve(self, inputs: int, results: int) -> None:
        """Makes room for so many numbers. The memory's old contents are lost."""
        if inputs > self._inputs.size:
            self._inputs = np.empty(inputs, np.float32)
        if results > self._results.size:
            self._results = np.empty(results, np.float32)

    def inputs(self, rows: int, columns: int) -> Float32:
        return self._inputs[: rows * columns].reshape(rows, columns)

    def result(self, offset: int, rows: int, columns: int) -> Float32:
        return self._results[offset : offset + rows * columns].reshape(rows, columns)


@dataclass(frozen=True, eq=False, slots=True)
class Product:
    """`rows` of every source times the weights. `offset` is where the results begin in the scratch memory."""

    rows: int
    sources: tuple[Source, ...]
    weights: Weights
    outputs: tuple[Output, ...]
    bias: Int32
    passes: tuple[Pass, ...]
    sum: Sum
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
        return self.rows * len(self.bias) * len(self.weights.parts)

    def multiply(self, memories: Memories, scratch: Scratch) -> list[AnyArray]:
        """The product of each part [M, N], in scratch memory unless it is float64."""
        if self.weights.integers is not None:
            values = np.empty((self.rows, sum(self.weights.depths)), np.uint8)
            self._bytes(values, memories)
            total = self.weights.integers.multiply(values)
            total += self.weights.integers.correction
            return [total]
        size = self.rows * len(self.bias)
        results: list[AnyArray] = []
        for number, part in enumerate(self.weights.parts):
            x = self._inputs(part, memories, scratch)
            if part.matrix.dtype == np.float64:
                results.append(x.astype(np.float64) @ part.matrix)
            else:
                results.append(np.matmul(x, part.matrix, out=scratch.result(self.offset + number * size, self.rows, len(self.bias))))
        return results

    def finish(self, memories: Memories, results: list[AnyArray]) -> None:
        """Writes accumulators that are needed later, then activates into the unified buffer. Overwrites `results`."""
        for output in self.outputs:
            if output.accumulators is not None:
                _store(memories["acc"][output.accumulators], [result[:, output.columns] for result in results])
        sums = self._biased(results)
        for step in self.passes:
            requantise_in_place(sums[:, step.columns], step.multiplier, step.zero, step.low, step.high)
        values = sums.astype(np.int8) if self.narrow else sums
        for output in self.outputs:
            if output.activation is not None:
                _write(memories, values[:, output.columns], output.activation)

    def _bytes(self, x: npt.NDArray[np.uint8], memories: Memories) -> None:
        """The input rows of all levels side by side, signed ones shifted by 128."""
        for source, (start, end) in zip(self.sources, spans(self.weights.depths), strict=True):
            read = taken(memories["ub"], source.places, slice(end - start)).view(np.uint8)
            into = x.reshape(*read.shape[:-1], -1)[..., start:end]
            if source.unsigned:
                into[...] = read
            else:
                np.bitwise_xor(read, np.uint8(SHIFT), out=into)

    def _inputs(self, part: Part, memories: Memories, scratch: Scratch) -> Float32:
        """The input rows of the part's levels side by side, widened."""
        x = scratch.inputs(self.rows, len(part.matrix))
        depths = self.weights.depths[part.first : part.last]
        for source, (start, end) in zip(self.sources[part.first : part.last], spans(depths), strict=True):
            if source.values.bytes_per_value == 1:
                read = taken(memories["ub"], source.places, slice(end - start))
                into = x.reshape(*read.shape[:-1], -1)[..., start:end]
                into[...] = read.view(np.uint8) if source.unsigned else read
            else:
                values = memories.load("ub", source.rows, source.values, slice(end - start))
                x[:, start:end] = unsigned(values) if source.unsigned else values
        return x

    def _biased(self, results: list[AnyArray]) -> Float32:
        """float32(acc + bias)."""
        match self.sum:
            case Sum.INTEGERS:
                results[0] += self.bias
                return results[0].astype(np.float32)
            case Sum.WIDE:
                return (_total(results) + self.bias).astype(np.float32)
            case Sum.SINGLE | Sum.PAIR:
                results[-1] += self.bias.astype(np.float32)
            case _:
                assert_never(self.sum)
        for more in results[1:]:
            results[0] += more
        sums: Float32 = results[0]
        return sums


def _total(results: Sequence[AnyArray]) -> Int32:
    total = results[0].astype(np.int32)
    for result in results[1:]:
        total += result.astype(np.int32)
    return total


def _store(accumulators: Int32, results: Sequence[AnyArray]) -> None:
    used = results[0].shape[1]
    accumulators[:, :used] = _total(results)
    accumulators[:, used:] = 0


def _write(memories: Memories, values: AnyArray, activation: Activation) -> None:
    """Requantised values [M, used], as int8 or still float32, through the table if there is one, into the unified buffer."""
    used, dest = values.shape[1], activation.dest
    if activation.to.bytes_per_value == 1:
        if used:
            narrow: Int8 = values.astype(np.int8, copy=False)
            put(memories["ub"], activation.places, slice(used), narrow if activation.look_up is None else activation.look_up(narrow))
        if len(activation.tail):
            put(memories["ub"], activation.places, slice(used, None), activation.tail.view(np.int8))
        return
    memories.store("ub", dest, looked_up(values.astype(activation.to.numpy), activation.block, activation.to), slice(used))
    memories.store("ub", dest, activation.tail, slice(used, None))


def choose_sum(parts: Sequence[Part], bias: Int32) -> Sum:
    """The cheapest way of summing that is exact; see the module."""
    if not parts:
        return Sum.INTEGERS
    if any(part.matrix.dtype == np.float64 for part in parts):
        return Sum.WIDE
    if len(parts) == 1 and (bias.astype(np.float32).astype(np.float64) == bias).all():
        return Sum.SINGLE
    if len(parts) == 2 and (parts[1].bound + np.abs(bias.astype(np.int64)) < EXACT).all():
        return Sum.PAIR
    return Sum.WIDE


def tail_lanes(block: Block, used: int, to: DeviceFormat) -> DeviceInts:
    """The results of an activate in the lanes without weights: [mxu - used]."""
    bias: Int64 = block["bias"]
    return activate(np.zeros((1, len(bias)), np.int32), block, to)[0, used:]
