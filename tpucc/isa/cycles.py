"""Durations: the cycles for which instructions occupy their engine, for whole columns of instructions at once.

The rates are those of the TPU paper's units, which the `Target` has in numbers; `tpucc.sim.timing` says when each instruction starts.
The first sentence of a function's docstring stands in the reference of the instruction set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.numerics import Int64
from tpucc.target import Target


@dataclass(frozen=True, eq=False, slots=True)
class Work:
    """How much each of some instructions does; int64 columns of equal length."""

    rows: Int64
    """Rows that are moved or computed."""
    bytes_per_value: Int64
    window: Int64
    """Rows that are read for each of them: those of a pooling window, else 1."""
    elements: Int64
    """The number of values that the host computes at an interrupt; -1 if it has nothing to do."""
    link_bytes: Int64
    """Bytes that cross the host link, padding included."""
    target: Target
    cores: int
    """That share the host and its link."""

    def of(self, indices: Int64) -> Work:
        """The work of some of the instructions."""
        columns = self.rows, self.bytes_per_value, self.window, self.elements, self.link_bytes
        rows, size, window, elements, moved = (column[indices] for column in columns)
        return Work(rows, size, window, elements, moved, self.target, self.cores)


Cycles = Callable[[Work], Int64 | int]


def no_time(work: Work) -> int:
    """Takes no cycles: no engine executes it."""
    return 0


def one_cycle(work: Work) -> int:
    """Takes one cycle."""
    return 1


def one_a_row(work: Work) -> Int64:
    """Takes one cycle for each row of bytes that it reads: two for a row of 16-bit values, and one for each row of a window."""
    return work.rows * work.bytes_per_value * work.window


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
