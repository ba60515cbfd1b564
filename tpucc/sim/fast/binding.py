"""Binds a product to the memories of one machine: the rows that it reads and writes are looked up once, when the program is prepared.

A recurrent network has thousands of small products. In each, finding rows and converting parameters took longer than the arithmetic. Where
8-bit values lie regularly, a product works on views of them; other rows are found, and put together, each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import setitem
from typing import NamedTuple

import numpy as np

from tpucc.machines.v1.functions import looked_up, unsigned
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int32
from tpucc.sim.fast.backends import SHIFT
from tpucc.sim.fast.product import Activation, JoinedProduct, Scratch, Source
from tpucc.sim.fast.walks import put, taken
from tpucc.sim.fast.weights import spans
from tpucc.sim.memories import Memories

Act = Callable[[], object]


class BoundProduct(NamedTuple):
    """The two halves of a product: `multiply` leaves its sums in scratch memory, `finish` requantises and writes them."""

    multiply: Callable[[], None]
    finish: Callable[[], None]


class Requantised(NamedTuple):
    """Columns of the sums [M, n], with the numbers that requantise them as float32; `zero` is None for a zero point of 0."""

    sums: Float32
    multiplier: Float32
    low: Float32
    high: Float32
    zero: Float32 | None


def bind(product: JoinedProduct, memories: Memories, scratch: Scratch) -> BoundProduct:
    """The product on these memories and this scratch memory."""
    parts = list(_parts(product, memories, scratch))
    sums = scratch.result(product.offset, product.rows, len(product.bias))
    results: list[AnyArray] = []
    kept = [(memories["acc"][output.accumulators], output.columns) for output in product.outputs if output.accumulators is not None]
    add, steps, narrow = _adding(product, sums), list(_requantised(product, sums)), product.narrow
    activated = [(output.columns, output.activation) for output in product.outputs if output.activation is not None]
    writes = [(columns, _writing(memories, columns.stop - columns.start, activation)) for columns, activation in activated]
    tails = [_tail(memories, activation) for _, activation in activated if len(activation.tail)]

    def multiply() -> None:
        results[:] = [part() for part in parts]

    def finish() -> None:
        for accumulators, columns in kept:
            _store(accumulators, [result[:, columns] for result in results])
        add(results)
        results.clear()
        for step in steps:
            _requantise(*step)
        values = sums.astype(np.int8) if narrow else sums
        for columns, write in writes:
            write(values[:, columns])
        for tail in tails:
            tail()

    return BoundProduct(multiply, finish)


def _parts(product: JoinedProduct, memories: Memories, scratch: Scratch) -> Iterator[Callable[[], AnyArray]]:
    """For each part a function that computes its product [M, N], in scratch memory where the product is float32."""
    sources, depths, columns = product.sources, product.weights.depths, len(product.bias)
    if (backend := product.weights.integers) is not None:
        values = np.empty((product.rows, sum(depths)), np.uint8)
        reads = [_reading(memories, values, source, span, shift=True) for source, span in zip(sources, spans(depths), strict=True)]

        def by_backend() -> AnyArray:
            for read in reads:
                read()
            total = backend.multiply(values)
            total += backend.correction
            return total

        yield by_backend
        return
    for number, part in enumerate(product.weights.parts):
        inputs = scratch.inputs(product.rows, len(part.matrix))
        own = slice(part.first, part.last)
        moves = [_reading(memories, inputs, source, span) for source, span in zip(sources[own], spans(depths[own]), strict=True)]
        wide = part.matrix.dtype == np.float64
        result = None if wide else scratch.result(product.offset + number * product.rows * columns, product.rows, columns)
        yield partial(_multiplied, moves, inputs, part.matrix, result)


def _multiplied(moves: Sequence[Act], inputs: Float32, matrix: AnyArray, result: Float32 | None) -> AnyArray:
    for move in moves:
        move()
    product: AnyArray = inputs.astype(np.float64) @ matrix if result is None else np.matmul(inputs, matrix, out=result)
    return product


def _reading(memories: Memories, x: AnyArray, source: Source, span: tuple[int, int], *, shift: bool = False) -> Act:
    """The function that puts the rows of a source into columns of x: widened, or with `shift` as bytes, to which 128 is added if they are
    signed."""
    memory, lanes, into = memories["ub"], slice(span[1] - span[0]), x[:, slice(*span)]
    if source.values.bytes_per_value > 1:

        def read_wide() -> None:
            values = memories.load("ub", source.rows, source.values, lanes)
            into[...] = unsigned(values) if source.unsigned else values

        return read_wide
    if isinstance(source.places, np.ndarray):

        def read() -> None:
            rows = taken(memory, source.places, lanes)
            into[...] = rows.view(np.uint8) ^ flip if shift else rows.view(np.uint8) if source.unsigned else rows

        flip = np.uint8(0 if source.unsigned else SHIFT)
        return read
    rows = taken(memory, source.places, lanes)
    into = x.reshape(*rows.shape[:-1], -1)[..., slice(*span)]
    if shift:
        return partial(np.bitwise_xor, rows.view(np.uint8), np.uint8(0 if source.unsigned else SHIFT), out=into)
    return partial(setitem, into, ..., rows.view(np.uint8) if source.unsigned else rows)  # a tenth faster than np.copyto


def _adding(product: JoinedProduct, sums: Float32) -> Callable[[list[AnyArray]], None]:
    """The function that adds the products of the parts and the bias: float32(acc + bias), in `sums`."""
    bias = product.bias.astype(np.float32)

    def exactly(results: list[AnyArray]) -> None:
        np.add(results[-1], bias, out=results[-1])
        for more in results[1:]:
            np.add(sums, more, out=sums)

    def in_integers(results: list[AnyArray]) -> None:
        sums[...] = _total(results) + product.bias

    return exactly if product.rounds_once else in_integers


def _total(results: Sequence[AnyArray]) -> Int32:
    total: Int32 = results[0].astype(np.int32, copy=False)
    for result in results[1:]:
        total = total + result.astype(np.int32)
    return total


def _store(accumulators: Int32, results: Sequence[AnyArray]) -> None:
    used = results[0].shape[1]
    accumulators[:, :used] = _total(results)
    accumulators[:, used:] = 0


def _requantised(product: JoinedProduct, sums: Float32) -> Iterator[Requantised]:
    for step in product.passes:
        low, high = (np.asarray(bound - step.zero, np.float32) for bound in (step.low, step.high))
        zero = None if isinstance(step.zero, int) and not step.zero else np.asarray(step.zero, np.float32)
        yield Requantised(sums[:, step.columns], step.multiplier, low, high, zero)


def _requantise(sums: Float32, multiplier: Float32, low: Float32, high: Float32, zero: Float32 | None) -> None:
    """As `numerics.requantise`, in place, of sums and numbers that are float32 already."""
    np.multiply(sums, multiplier, out=sums)
    np.rint(sums, out=sums)
    np.maximum(sums, low, out=sums)
    np.minimum(sums, high, out=sums)
    if zero is not None:
        np.add(sums, zero, out=sums)


def _writing(memories: Memories, used: int, activation: Activation) -> Callable[[AnyArray], None]:
    """The function that writes requantised values [M, used], int8 or float32, through the table if there is one, into the unified
    buffer."""
    lanes, look_up, places, memory = slice(used), activation.look_up, activation.places, memories["ub"]
    if activation.to.bytes_per_value > 1:

        def write_wide(values: AnyArray) -> None:
            found: DeviceInts = looked_up(values.astype(activation.to.numpy), activation.block, activation.to)
            memories.store("ub", activation.dest, found, lanes)

        return write_wide
    dest = None if isinstance(places, np.ndarray) else taken(memory, places, lanes)

    def write(values: AnyArray) -> None:
        narrow = values.astype(np.int8, copy=False)
        found = narrow if look_up is None else look_up(narrow)
        if dest is None:
            put(memory, places, lanes, found)
        else:
            dest[...] = found.reshape(dest.shape)

    return write


def _tail(memories: Memories, activation: Activation) -> Act:
    """The function that writes the lanes past the used columns."""
    lanes, tail, places = slice(-len(activation.tail), None), activation.tail, activation.places
    if activation.to.bytes_per_value > 1:
        return partial(memories.store, "ub", activation.dest, tail, lanes)
    if isinstance(places, np.ndarray):
        return partial(put, memories["ub"], places, lanes, tail.view(np.int8))
    return partial(setitem, taken(memories["ub"], places, lanes), ..., tail.view(np.int8))
