"""Divides the arrays of a model's inputs into batches.

A model has a fixed batch: the leading size of its inputs. Arrays may have any other leading size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tpucc.ir import Node, TensorType
from tpucc.numerics import AnyArray
from tpucc.passes.check_inputs import InputArrays


def batches(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> Iterator[InputArrays]:
    """The arrays of `checked_inputs` in batches of the model; the last batch is filled by repeating its own rows.

    An array of one batch or less is in every batch, repeated as often as it takes to fill the batch. With a `limit`, no more than that many
    rows of each array are used (but a whole batch at least), spread evenly, as files are often sorted by class.
    """
    chosen = {node.name: _limited(arrays[node.name], node.type, limit) for node in inputs}
    for number in range(batch_count(inputs, arrays, limit)):
        yield {node.name: nth_batch(chosen[node.name], node.type, number) for node in inputs}


def batch_count(inputs: Sequence[Node], arrays: Mapping[str, AnyArray], limit: int = 0) -> int:
    """The number of `batches`."""
    return max((-(-_rows_used(node.type, arrays[node.name], limit) // node.type.shape[0]) for node in inputs if node.type.shape), default=1)


def largest_batch(inputs: Sequence[Node]) -> int:
    """The largest leading size of an input; 1 where all inputs are scalars."""
    return max((node.type.shape[0] for node in inputs if node.type.shape), default=1)


def nth_batch(array: AnyArray, type_: TensorType, number: int) -> AnyArray:
    """Batch `number` of an array, counted from 0, in the shape of its input's type."""
    if not type_.shape or array.shape == type_.shape:
        return array
    size = type_.shape[0]
    part = array if len(array) <= size else array[number * size : (number + 1) * size]
    return part if len(part) == size else np.resize(part, type_.shape)


def _rows_used(type_: TensorType, array: AnyArray, limit: int) -> int:
    rows = int(array.shape[0])
    return min(rows, max(limit, type_.shape[0])) if limit else rows


def _limited(array: AnyArray, type_: TensorType, limit: int) -> AnyArray:
    """The rows of an array that are used, spread evenly."""
    if not type_.shape or (count := _rows_used(type_, array, limit)) == array.shape[0]:
        return array
    chosen: AnyArray = array[np.arange(count, dtype=np.int64) * array.shape[0] // count]
    return chosen
