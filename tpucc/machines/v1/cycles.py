"""Durations that only v1's instructions have: of a tile's fetch, of transfers and of host steps.

The rates are those of the TPU paper's units, which the `Target` has in numbers; `tpucc.sim.timing` says when each instruction starts.
The first sentence of a function's docstring stands in the reference of the instruction set.
"""

from __future__ import annotations

import numpy as np

from tpucc.machine.unit import Work
from tpucc.numerics import Int64


def tile_fetch(work: Work) -> int:
    """Takes the time of a tile's bytes at the bandwidth of the weight memory."""
    return work.target.tile_fetch_cycles


def transfer(work: Work) -> Int64:
    """Takes the latency of the host link, and the time of all cores' bytes at its bandwidth."""
    sizes, which = np.unique(work.link_bytes, return_inverse=True)
    return np.array([work.target.link_cycles(size * work.cores) for size in sizes.tolist()], np.int64)[which]


def host_step(work: Work) -> Int64:
    """Takes the time of what the host computes, for one core after the other; the last interrupt takes none."""
    each = [work.target.host_step_cycles(count) * work.cores if count >= 0 else 0 for count in work.elements.tolist()]
    return np.array(each, np.int64)
