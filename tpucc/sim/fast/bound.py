"""A product on one machine: the rows that it reads and writes are looked up once, when the program is prepared.

A recurrent network has thousands of small products. In each, finding rows and converting parameters took longer than the arithmetic. Only
the usual case is bound: 8-bit values on rows that lie regularly, sums in float32, no accumulators that are needed later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tpucc.numerics import AnyArray, Float32, Int8
from tpucc.sim.fast.product import Activation, Product, Scratch, Sum
from tpucc.sim.fast.walks import LookUp, taken
from tpucc.sim.fast.weights import spans
from tpucc.sim.memories import Memories


class Bound(NamedTuple):
    """The two halves of a product: `multiply` leaves its sums in scratch memory, `finish` requantises and writes them."""

    multiply: Callable[[], None]
    finish: Callable[[], None]


class Factor(NamedTuple):
    """One part of a product: the rows to widen and where to, the inputs [M, K], the weights [K, N], the result [M, N]."""

    moves: list[tuple[Float32, AnyArray]]
    inputs: Float32
    weights: Float32
    result: Float32


class Requantised(NamedTuple):
    """Columns of the sums [M, n], with the numbers that requantise them as float32; `zero` is None for a zero point of 0."""

    sums: Float32
    multiplier: Float32
    low: Float32
    high: Float32
    zero: Float32 | None


class Written(NamedTuple):
    """Columns of the results, the rows [.., n] that they go to, and the table that they go through."""

    columns: slice
    dest: Int8
    look_up: LookUp | None


def bound(product: Product, memories: Memories, scratch: Scratch) -> Bound | None:
    """The product on this machine and this scratch memory, or None where it is not the usual case."""
    activations = [output.activation for output in product.outputs if output.activation is not None]
    if not (product.narrow and _usual(product, activations)):
        return None
    factors = list(_factors(product, memories, scratch))
    sums, bias = factors[0].result, product.bias.astype(np.float32)
    steps = list(_requantised(product, sums))
    writes = [_written(memories, output.columns, output.activation) for output in product.outputs if output.activation is not None]
    tails = [(taken(memories["ub"], a.places, slice(-len(a.tail), None)), a.tail.view(np.int8)) for a in activations if len(a.tail)]

    def multiply() -> None:
        for moves, inputs, weights, result in factors:
            for into, rows in moves:
                into[...] = rows
            np.matmul(inputs, weights, out=result)

    def finish() -> None:
        np.add(factors[-1].result, bias, out=factors[-1].result)
        for more in factors[1:]:
            np.add(sums, more.result, out=sums)
        for step in steps:
            _requantise(*step)
        values = sums.astype(np.int8)
        for columns, dest, look_up in writes:
            found = values[:, columns]
            dest[...] = (found if look_up is None else look_up(found)).reshape(dest.shape)
        for rows, tail in tails:
            rows[...] = tail

    return Bound(multiply, finish)


def _usual(product: Product, activations: list[Activation]) -> bool:
    irregular = any(isinstance(places, np.ndarray) for places in (*(s.places for s in product.sources), *(a.places for a in activations)))
    wide = any(source.values.bytes_per_value != 1 for source in product.sources)
    kept = any(output.accumulators is not None for output in product.outputs)
    return product.sum in (Sum.SINGLE, Sum.PAIR) and not (irregular or wide or kept)


def _factors(product: Product, memories: Memories, scratch: Scratch) -> Iterator[Factor]:
    columns = len(product.bias)
    for number, part in enumerate(product.weights.parts):
        inputs = scratch.inputs(product.rows, len(part.matrix))
        moves = []
        depths = product.weights.depths[part.first : part.last]
        for source, (start, end) in zip(product.sources[part.first : part.last], spans(depths), strict=True):
            rows: AnyArray = taken(memories["ub"], source.places, slice(end - start))
            into = inputs.reshape(*rows.shape[:-1], -1)[..., start:end]
            moves.append((into, rows.view(np.uint8) if source.unsigned else rows))
        result = scratch.result(product.offset + number * product.rows * columns, product.rows, columns)
        yield Factor(moves, inputs, part.matrix, result)


def _requantised(product: Product, sums: Float32) -> Iterator[Requantised]:
    for step in product.passes:
        low, high = (np.asarray(bound - step.zero, np.float32) for bound in (step.low, step.high))
        zero = None if isinstance(step.zero, int) and not step.zero else np.asarray(step.zero, np.float32)
        yield Requantised(sums[:, step.columns], step.multiplier, low, high, zero)


def _requantise(sums: Float32, multiplier: Float32, low: Float32, high: Float32, zero: Float32 | None) -> None:
    """As `numerics.requantise_in_place`, with numbers that are float32 already."""
    np.multiply(sums, multiplier, out=sums)
    np.rint(sums, out=sums)
    np.maximum(sums, low, out=sums)
    np.minimum(sums, high, out=sums)
    if zero is not None:
        np.add(sums, zero, out=sums)


def _written(memories: Memories, columns: slice, activation: Activation) -> Written:
    return Written(columns, taken(memories["ub"], activation.places, slice(columns.stop - columns.start)), activation.look_up)
