"""Synthetic inputs: random arrays that stand in for the inputs of a model where there are no examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.ir import Node, TensorType
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import require_computable
from tpucc.passes.batching import batch_count, largest_batch, nth_batch
from tpucc.passes.check_inputs import InputArrays

VALUES = 64
"""The least number of values that `synthetic_batches` draws for an input: one value of a scalar says nothing of its range."""


def synthetic_inputs(inputs: Sequence[Node], rows: int) -> InputArrays:
    """Arrays of about `rows` rows (whole batches), from seed 0.

    Floating-point values are standard normal, or uniform in the input's range if it has one; integers are uniform in their range, and 0
    without one. Raises `LimitError` for an input that no memory should be filled with.
    """
    require_computable(*inputs)
    generator = np.random.default_rng(0)
    count = max(1, -(-rows // largest_batch(inputs)))
    return {node.name: random_array(generator, node.type, count) for node in inputs}


def synthetic_batches(inputs: Sequence[Node], rows: int, most: int) -> Iterator[InputArrays]:
    """The arrays of `synthetic_inputs` in batches, and more batches, up to `most` in all, until each input has had `VALUES` values.

    Inputs of fewer values are drawn afresh in each batch after the first; the batches of the other inputs are repeated.
    """
    arrays = synthetic_inputs(inputs, rows)
    count = batch_count(inputs, arrays)
    few = [node for node in inputs if arrays[node.name].size < VALUES and (node.type.dtype == "f32" or node.type.range)]
    wanted = max((-(-VALUES // node.type.size) for node in few), default=0)
    generator = np.random.default_rng(1)
    for number in range(max(count, min(wanted, most))):
        batch = {node.name: nth_batch(arrays[node.name], node.type, number % count) for node in inputs}
        yield batch if number == 0 else batch | {node.name: random_array(generator, node.type) for node in few}


def random_array(generator: np.random.Generator, type_: TensorType, count: int = 1) -> AnyArray:
    """`count` batches of random values of a type, as `synthetic_inputs` says."""
    shape = (type_.shape[0] * count, *type_.shape[1:]) if type_.shape else ()
    if type_.dtype != "f32":
        low, high = (int(type_.range.low), int(type_.range.high)) if type_.range else (0, 0)
        return np.asarray(generator.integers(low, high, shape, endpoint=True)).astype(type_.numpy)
    if type_.range:
        return np.asarray(generator.uniform(type_.range.low, type_.range.high, shape)).astype(np.float32)
    return np.asarray(generator.standard_normal(shape, np.float32))


def distribution(type_: TensorType) -> str:
    """In words, the distribution that `random_array` draws from."""
    if type_.range:
        return "uniform in their range"
    return "standard normal" if type_.dtype == "f32" else "0"
