"""Arrays that are known: where their values repeat, and what they share with others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import dropwhile

import numpy as np

from tpucc.numerics import AnyArray


def without_ones(array: AnyArray) -> AnyArray:
    """Without the first axes of size 1, which broadcasting adds."""
    return array.reshape(own_sizes(array.shape) or (1,) * min(array.ndim, 1))


def own_sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes from the first that isn't 1."""
    return tuple(dropwhile(lambda size: size == 1, shape))


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that several have together; None where they don't fit."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def size_in_memory(array: AnyArray) -> int:
    """The values that an array has in memory."""
    return math.prod(size for size, step in zip(array.shape, array.strides, strict=True) if step)


def repeated_axes(array: AnyArray) -> tuple[int, ...]:
    """The axes along which the values repeat, of an array that was made by broadcasting."""
    return tuple(axis for axis, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)) if size > 1 and step == 0)


def without_repetition(array: AnyArray) -> AnyArray:
    """The array with size 1 along axes where its values repeat, as those of a mask that was computed for a whole batch. A state of one
    value stays."""
    made = array
    for axis in range(array.ndim):
        first = made[(slice(None),) * axis + (slice(1),)]
        made = first if made.shape[axis] > 1 and (made == first).all() else made
    return made if made.size > 1 else array


def is_same(a: AnyArray, b: AnyArray) -> bool:
    """Whether two arrays have the same shape and the same values."""
    return a is b or (a.shape == b.shape and np.array_equal(a, b))


def is_count(array: AnyArray) -> bool:
    """Whether the numbers 0, 1, 2 and so on stand along the last axis: what is compared with them becomes rows of one 1."""
    return (
        array.dtype.kind in "iu"
        and array.size > 1
        and array.shape[-1] == array.size
        and np.array_equal(array.reshape(-1), np.arange(array.size))
    )
