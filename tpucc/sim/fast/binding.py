"""Binds a product to the memories of one machine: the rows that it reads and writes are looked up once, when the program is prepared.

A recurrent network has thousands of small products. In each, finding rows and converting parameters took longer than the arithmetic. Where
8-bit values lie regularly, a product works on views of them; other rows are found, and put together, each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import setitem

import numpy as np

from tpucc.machines.v1.functions import looked_up, unsigned
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int32
from tpucc.sim.fast.backends import SHIFT
from tpucc.sim.fast.product import Activation, JoinedProduct, Scratch, Source
from tpucc.sim.fast.walks import looker, put, regular, taken, windows_of
from tpucc.sim.fast.weights import spans
from tpucc.sim.memories import Memories, numbered

Act = Callable[[], object]


def bind(product: JoinedProduct, memories: Memories, scratch: Scratch) -> tuple[Act, Act]:
    """The two halves of the product on these memories: one leaves its sums in scratch memory, the other requantises and writes them."""
    free = scratch.results(product.offset, product.scratch_size)
    parts = list(_parts(product, memories, scratch, free))
    sums = free[: product.rows * len(product.bias)].reshape(product.rows, -1)
    results: list[AnyArray] = []
    kept = [(memories["acc"][output.accumulators], output.columns) for output in product.outputs if output.accumulators is not None]
    add, requantisation = _adding(product, sums), product.requantisation
    activated = [(output.columns, output.activation) for output in product.outputs if output.activation is not None]
    writes = [_writing(memories, sums[:, columns], activation) for columns, activation in activated]
    writes += [_tail(memories, activation) for _, activation in activated if len(activation.tail)]

    def multiply() -> None:
        results[:] = [part() for part in parts]

    def finish() -> None:
        for accumulators, columns in kept:
            _store(accumulators, [result[:, columns] for result in results])
        add(results)
        results.clear()
        if activated:
            requantisation.apply(sums)
        for write in writes:
            write()

    return multiply, finish


def _parts(product: JoinedProduct, memories: Memories, scratch: Scratch, free: Float32) -> Iterator[Callable[[], AnyArray]]:
    """For each part a function that computes its product [M, N], in `free` where the product is float32, one part behind the other."""
    sources, depths, size = product.sources, product.weights.depths, product.rows * len(product.bias)
    if (backend := product.weights.integers) is not None:
        values = np.empty((product.rows, sum(depths)), np.uint8)
        reads = _reads(memories, values, sources, depths, np.empty_like(values), shift=True)

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
        own_free = free[number * size :]
        result = None if part.matrix.dtype == np.float64 else own_free[:size].reshape(product.rows, -1)
        moves = _reads(memories, inputs, sources[own], depths[own], own_free)
        yield partial(_multiplied, moves, inputs, part.matrix, result)


def _multiplied(moves: Sequence[Act], inputs: Float32, matrix: AnyArray, result: Float32 | None) -> AnyArray:
    for move in moves:
        move()
    product: AnyArray = inputs.astype(np.float64) @ matrix if result is None else np.matmul(inputs, matrix, out=result)
    return product


def _reads(
    memories: Memories, x: AnyArray, sources: Sequence[Source], depths: Sequence[int], free: AnyArray, *, shift: bool = False
) -> list[Act]:
    """The functions that put the rows of sources into columns of x [M, K]; `free` is memory that may be overwritten, at least as large.

    Where sources are the places of windows of an image that overlap, its rows are widened once, to `free`, and copied to each window.
    """
    kinds = {(source.values, source.unsigned, depth) for source, depth in zip(sources, depths, strict=True)}
    windows = windows_of(np.stack([numbered(source.rows) for source in sources], axis=1)) if len(kinds) == 1 else None
    if windows is None or windows.height >= len(x) * len(sources):
        return [_reading(memories, x, source, span, shift=shift) for source, span in zip(sources, spans(depths), strict=True)]
    image = free.reshape(-1)[: windows.height * depths[0]].reshape(windows.height, -1)
    view = windows.of(image)
    whole = replace(sources[0], rows=windows.rows)
    return [_reading(memories, image, whole, (0, depths[0]), shift=shift), partial(setitem, x.reshape(view.shape), ..., view)]


def _reading(memories: Memories, x: AnyArray, source: Source, span: tuple[int, int], *, shift: bool = False) -> Act:
    """The function that puts the rows of a source into columns of x: widened, or with `shift` as bytes, to which 128 is added if they are
    signed."""
    memory, lanes, into = memories["ub"], slice(span[1] - span[0]), x[:, slice(*span)]
    if source.values.bytes_per_value > 1:

        def read_wide() -> None:
            values = memories.load("ub", source.rows, source.values, lanes)
            into[...] = unsigned(values) if source.unsigned else values

        return read_wide
    kind, flip, places = np.uint8 if shift or source.unsigned else np.int8, np.uint8(0 if source.unsigned else SHIFT), regular(source.rows)
    if isinstance(places, np.ndarray):

        def read() -> None:
            rows = taken(memory, places, lanes).view(kind)
            into[...] = rows ^ flip if shift else rows

        return read
    rows = taken(memory, places, lanes).view(kind)
    into = x.reshape(*rows.shape[:-1], -1)[..., slice(*span)]
    return partial(np.bitwise_xor, rows, flip, out=into) if shift else partial(setitem, into, ..., rows)  # a tenth faster than np.copyto


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


def _writing(memories: Memories, values: Float32, activation: Activation) -> Act:
    """The function that writes requantised values [M, used], which are integers, through the table if there is one, into the unified
    buffer."""
    lanes, places, memory, block = slice(values.shape[1]), regular(activation.dest), memories["ub"], activation.block
    look_up = looker(block) if block["has_table"] else None
    if activation.to.bytes_per_value > 1:

        def write_wide() -> None:
            found: DeviceInts = looked_up(values.astype(activation.to.numpy), block, activation.to)
            memories.store("ub", activation.dest, found, lanes)

        return write_wide
    if look_up is None and not isinstance(places, np.ndarray):
        dest = taken(memory, places, lanes)
        return partial(setitem, dest, ..., values.reshape(dest.shape))

    def write() -> None:
        put(memory, places, lanes, values if look_up is None else look_up(values.astype(np.int8)))

    return write


def _tail(memories: Memories, activation: Activation) -> Act:
    """The function that writes the lanes past the used columns."""
    lanes, tail, places = slice(-len(activation.tail), None), activation.tail, regular(activation.dest)
    if activation.to.bytes_per_value > 1:
        return partial(memories.store, "ub", activation.dest, tail, lanes)
    if isinstance(places, np.ndarray):
        return partial(put, memories["ub"], places, lanes, tail.view(np.int8))
    return partial(setitem, taken(memories["ub"], places, lanes), ..., tail.view(np.int8))
