"""What an all-reduce costs, by formula.

Recursive halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005) on the
machine of a Cloud TPU: two cores a chip, and the chips in a torus, 2×2 of a v2-8. Halving goes through one dimension after the other. In a
dimension of n nodes it moves `2 (n - 1) / n` of the bytes that come to it, half of that to reduce and half to gather, in `2 (n - 1)` hops;
the dimensions after it have 1/n of the bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tpucc.target import Target

CORES = (1, 2, 4, 8)
"""The numbers of cores that a v2-8 can be divided into."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """`nodes` that exchange, each at `rate` bytes a second."""

    nodes: int
    rate: float


@dataclass(frozen=True, slots=True)
class Cost:
    """An all-reduce among `cores`: the bytes that each core sends, the hops one after another, and the seconds."""

    cores: int
    sent: float
    hops: int
    seconds: float


def core_bandwidth(target: Target) -> float:
    """Bytes a second of one core's share of its chip's memory, through which the cores of a chip exchange, too."""
    return target.weight_bandwidth / target.cores


def dimensions(cores: int, target: Target) -> tuple[Dimension, ...]:
    """The dimensions of a machine of so many cores, a power of two: the two cores of a chip, then the torus, as square as it can be.

    Both dimensions of a torus work at the same time, each on half of the bytes: that counts as twice the rate.
    """
    chips = max(1, cores // 2)
    columns = 2 ** (int(math.log2(chips)) // 2)
    torus = [count for count in (chips // columns, columns) if count > 1]
    inside = [Dimension(2, core_bandwidth(target) / 2)] if cores > 1 else []  # each byte is written and read
    return (*inside, *(Dimension(count, target.ici_bandwidth * len(torus)) for count in torus))


def possible(batch: int, microbatches: int) -> tuple[int, ...]:
    """The numbers of cores, of `CORES`, among which a batch can be divided when each makes so many parts of its share."""
    return tuple(count for count in CORES if batch % (count * microbatches) == 0)


def all_reduce(size: float, cores: int, target: Target) -> Cost:
    """The cost of the mean over `cores`, a power of two, of `size` bytes that each has. Cores that share links count as one node there."""
    left, hops, seconds = size, 0, 0.0
    for index, dimension in enumerate(dimensions(cores, target)):
        others = dimension.nodes - 1
        seconds += 2 * others / dimension.nodes * left / dimension.rate + 2 * others * target.ici_hop_seconds
        hops += 2 * others
        if index:  # both cores of a chip send through its links: together all that the chip has
            left /= dimension.nodes
    return Cost(cores, 2 * (cores - 1) / cores * size, hops, seconds)
