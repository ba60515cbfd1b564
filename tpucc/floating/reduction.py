"""Sums in a defined order: halving trees over the elements of a value.

A halving tree adds the upper half to the lower half, until one element is left:

    0 1 2 3 4 5 6 7    ->    0+4  1+5  2+6  3+7    ->    (0+4)+(2+6)  (1+5)+(3+7)    ->    ((0+4)+(2+6)) + ((1+5)+(3+7))
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tpucc.floating.nan import with_one_nan
from tpucc.numerics import AnyArray, Float32

ZERO = np.array(0, np.float32)
SHORT = 32
"""With rows of at most so many elements, it is faster to copy to a transposed layout first, and to add the rows of the copy."""


def tree_sum(x: Float32, axes: tuple[int, ...]) -> Float32:
    """The sums of x over `axes`, which the result hasn't; float32. Without axes, a copy.

    Several axes are treated as one flattened axis, in row-major order. That axis is padded with zeros to a power of two, and added as a
    halving tree. A sum that is zero is +0, and one that is NaN is `NAN`.
    """
    if not axes:
        return np.array(x, np.float32)
    shape, before, length, after, moved = _sums(x.shape, axes)
    elements = (x if moved is None else x.transpose(moved)).reshape(before, length, after)
    total = halved(elements) + ZERO  # -0 + 0 is +0
    return with_one_nan(total).reshape(shape)


@lru_cache(maxsize=1024)
def _sums(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[tuple[int, ...], int, int, int, tuple[int, ...] | None]:
    """How an array is summed: the result's shape, the three sizes of the array [A, n, B] of which n is summed, and the order of the axes.

    The order is None where the summed axes are adjacent: a reshape is enough then, and no element moves.
    """
    summed = sorted(axis % len(shape) for axis in axes)
    kept = tuple(axis for axis in range(len(shape)) if axis not in summed)
    result, length = tuple(shape[axis] for axis in kept), math.prod(shape[axis] for axis in summed)
    if summed[-1] - summed[0] == len(summed) - 1:
        return result, math.prod(shape[: summed[0]]), length, math.prod(shape[summed[-1] + 1 :]), None
    return result, 1, length, math.prod(result), (*summed, *kept)


def halved(x: AnyArray) -> AnyArray:
    """x [A, n, B] summed along n; [A, B], which may be a part of x.

    What has no partner is kept: adding the padding's zero changes no number but -0.
    """
    n = x.shape[1]
    if n < 2:
        return x[:, 0] if n else np.zeros((x.shape[0], x.shape[2]), x.dtype)
    half = 1 << ((n - 1).bit_length() - 1)  # the largest power of two below n
    parts = np.empty((x.shape[0], half, x.shape[2]), x.dtype)
    np.add(x[:, : n - half], x[:, half:], out=parts[:, : n - half])
    parts[:, n - half :] = x[:, n - half : half]
    rows = parts.swapaxes(0, 1)  # [half, A, B]
    while half > 1:
        if half * x.shape[2] <= SHORT and not rows.flags.c_contiguous:
            rows = rows[:half].copy()
        half //= 2
        np.add(rows[:half], rows[half : 2 * half], out=rows[:half])
    return np.asarray(rows[0])
