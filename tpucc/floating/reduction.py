"""Sums in a defined order: halving trees, over the elements of a value and over cores.

A halving tree adds the upper half to the lower half, until one element is left:

    0 1 2 3 4 5 6 7    ->    0+4  1+5  2+6  3+7    ->    (0+4)+(2+6)  (1+5)+(3+7)    ->    ((0+4)+(2+6)) + ((1+5)+(3+7))

It is the order of recursive halving (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tpucc.floating.bfloat16 import NAN, with_one_nan
from tpucc.numerics import Float32

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
    total = _halved(elements) + ZERO  # -0 + 0 is +0
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


def _halved(x: Float32) -> Float32:
    """x [A, n, B] summed along n; [A, B], which may be a part of x.

    What has no partner is kept: adding the padding's zero changes no number but -0.
    """
    n = x.shape[1]
    if n < 2:
        return x[:, 0] if n else np.zeros((x.shape[0], x.shape[2]), np.float32)
    half = 1 << ((n - 1).bit_length() - 1)  # the largest power of two below n
    parts = np.empty((x.shape[0], half, x.shape[2]), np.float32)
    np.add(x[:, : n - half], x[:, half:], out=parts[:, : n - half])
    parts[:, n - half :] = x[:, n - half : half]
    rows = parts.swapaxes(0, 1)  # [half, A, B]
    while half > 1:
        if half * x.shape[2] <= SHORT and not rows.flags.c_contiguous:
            rows = rows[:half].copy()
        half //= 2
        np.add(rows[:half], rows[half : 2 * half], out=rows[:half])
    return np.asarray(rows[0])


def all_reduce_mean(parts: Sequence[Float32]) -> Float32:
    """The mean of one array per core, all of one shape: a halving tree over the cores, then times float32(1 / N).

    N is a power of two; otherwise ValueError. `all_reduce_steps` gives the same bits core by core.
    """
    _check_cores(len(parts))
    with np.errstate(over="ignore", invalid="ignore"):
        sums = list(parts)
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [low + high for low, high in zip(sums[:half], sums[half:], strict=True)]
        return _mean(sums[0], len(parts))


def all_reduce_steps(parts: Sequence[Float32]) -> list[Float32]:
    """The same mean as the cores compute it, one array per core: recursive halving, then the way back.

    In each step a core exchanges half of what it is responsible for with its partner, core XOR N/2, N/4, … 1, and adds what it gets. Then
    it is responsible for 1/N of the elements, which it multiplies by float32(1 / N). The same steps backwards gather the means.
    """
    cores = len(parts)
    _check_cores(cores)
    held = [np.array(part, np.float32).reshape(-1) for part in parts]
    spans = [(0, held[0].size)] * cores
    distances = [1 << bit for bit in reversed(range(cores.bit_length() - 1))]
    with np.errstate(over="ignore", invalid="ignore"):
        for distance in distances:
            spans = [_half(span, bool(core & distance)) for core, span in enumerate(spans)]
            sent = [held[core ^ distance][start:stop].copy() for core, (start, stop) in enumerate(spans)]
            for core, (start, stop) in enumerate(spans):
                held[core][start:stop] += sent[core]
        for core, (start, stop) in enumerate(spans):
            held[core][start:stop] = _mean(held[core][start:stop], cores)
    for distance in reversed(distances):
        received = [(spans[core ^ distance], held[core ^ distance].copy()) for core in range(cores)]
        for core, ((start, stop), values) in enumerate(received):
            held[core][start:stop] = values[start:stop]
        spans = [(min(span[0], other[0]), max(span[1], other[1])) for span, (other, _) in zip(spans, received, strict=True)]
    return [array.reshape(parts[0].shape) for array in held]


def _half(span: tuple[int, int], upper: bool) -> tuple[int, int]:
    start, stop = span
    middle = (start + stop) // 2
    return (middle, stop) if upper else (start, middle)


def _mean(total: Float32, cores: int) -> Float32:
    mean = np.asarray(total * np.float32(1 / cores))
    return np.asarray(np.where(np.isnan(mean), NAN, mean))


def _check_cores(cores: int) -> None:
    if cores < 1 or cores & (cores - 1):
        raise ValueError(f"{cores} cores: recursive halving needs a power of two")
