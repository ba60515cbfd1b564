"""The mean over cores in a defined order: a halving tree, as `tpucc.floating.reduction` adds the elements of a value.

It is the order of recursive halving (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.floating.nan import NAN
from tpucc.numerics import Float32


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


def all_reduce_steps(parts: Sequence[Float32], microbatches: int = 1) -> list[Float32]:
    """The same mean as the cores compute it, one array per core: recursive halving, then the way back.

    In each step a core exchanges half of what it is responsible for with its partner, core XOR N/2, N/4, … 1, and adds what it gets. Then
    it is responsible for 1/N of the elements, which it multiplies by float32(1 / N). The same steps backwards gather the means. Where each
    core's array is the sum of several microbatches, it is the mean over all of these.
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
            held[core][start:stop] = _mean(held[core][start:stop], cores * microbatches)
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


def _mean(total: Float32, parts: int) -> Float32:
    mean = np.asarray(total * np.float32(1 / parts))
    return np.asarray(np.where(np.isnan(mean), NAN, mean))


def _check_cores(cores: int) -> None:
    if cores < 1 or cores & (cores - 1):
        raise ValueError(f"{cores} cores: recursive halving needs a power of two")
