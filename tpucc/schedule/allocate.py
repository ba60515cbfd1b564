"""Unified-buffer rows for virtual buffers whose lives are known. As few rows as possible are used in all.

Two ways are tried. Linear scan goes through time and puts each buffer into the smallest gap that fits (best fit). Greedy by size puts
the largest buffer first, each as low as the buffers alive with it allow (Pisarchyk and Lee, "Efficient Memory Management for Deep
Neural Net Inference", 2020). The better one wins; the largest live sum bounds both from below.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.isa.program import HostBuffer
from tpucc.lowering.liveness import largest_live_sum
from tpucc.machine.instruction import Records
from tpucc.numerics import Int64

Allocate = Callable[["Lives", int], Int64]
"""`allocate(lives, rows)`: the first row of each buffer, or `TooLarge`."""
ENDLESS = 2**60
GREEDY_LIMIT = 2000
"""The most buffers for greedy by size, whose time grows with the square of their number."""


@dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """Buffers without a place yet: their rows, and their first and last instruction, both inclusive; last is -1 for one never used."""

    first: Int64
    last: Int64
    rows: Int64

    def peak(self, starts: Int64) -> int:
        """The highest row in use, plus one."""
        return int((starts + self.rows)[self.last >= 0].max(initial=0))


class Full(Exception):
    """No gap has `rows` rows; `used` rows are in use."""

    def __init__(self, rows: int, used: int) -> None:
        super().__init__(f"no gap of {rows:,} rows")
        self.rows, self.used = rows, used


class TooLarge(Exception):
    """Raised by an allocator when the buffers don't fit: if possible, rows are then spilled to host memory."""


def allocate(lives: Lives, rows: int) -> Int64:
    """The first row of each buffer in a memory of `rows` rows. Raises `TooLarge` when none of the ways fits."""
    # lab 5 begin: give each buffer its first row, so that buffers that are alive together share none
    needed = largest_live_sum(lives.first, lives.last, lives.rows)
    if needed > rows:
        raise TooLarge(f"{needed:,} rows are alive at one time, and there are {rows:,}")
    starts = linear_scan(lives)
    if lives.peak(starts) > needed and len(lives.rows) <= GREEDY_LIMIT:
        starts = min(starts, greedy_by_size(lives), key=lives.peak)
    if lives.peak(starts) > rows:
        raise TooLarge(f"no way was found to place the buffers in {rows:,} rows")
    return starts
    # lab 5 end


def linear_scan(lives: Lives, size: int = ENDLESS) -> Int64:
    """Best fit in `size` rows, in the order of first use. Raises `Full`."""
    # lab 5 begin: give each buffer its first row, so that buffers that are alive together share none
    starts = np.zeros(len(lives.rows), np.int64)
    gaps = Gaps(size)
    alive: list[tuple[int, int, int]] = []
    order = [buffer for buffer in np.argsort(lives.first, kind="stable").tolist() if lives.last[buffer] >= 0]
    columns = (lives.first[order].tolist(), lives.last[order].tolist(), lives.rows[order].tolist())
    for buffer, first, last, rows in zip(order, *columns, strict=True):
        while alive and alive[0][0] < first:
            gaps.give(*heapq.heappop(alive)[1:])
        starts[buffer] = start = gaps.take(rows)
        if start < 0:
            raise Full(rows, sum(used for _, _, used in alive))
        heapq.heappush(alive, (last, start, rows))
    return starts
    # lab 5 end


def greedy_by_size(lives: Lives) -> Int64:
    """The largest buffer first, each at the lowest rows that no buffer alive with it has; equal ones in the order of first use."""
    # lab 5 begin: give each buffer its first row, so that buffers that are alive together share none
    starts = np.zeros(len(lives.rows), np.int64)
    order = np.lexsort((lives.first, -lives.rows))
    order = order[lives.last[order] >= 0]
    first, last, rows = lives.first[order], lives.last[order], lives.rows[order]
    placed = np.zeros(len(order), np.int64)
    for position in range(len(order)):
        together = (first[:position] <= last[position]) & (last[:position] >= first[position])
        placed[position] = _lowest(placed[:position][together], rows[:position][together], int(rows[position]))
    starts[order] = placed
    return starts
    # lab 5 end


def _lowest(starts: Int64, rows: Int64, wanted: int) -> int:
    """The lowest start of `wanted` rows beside the occupied stretches."""
    # lab 5 begin: give each buffer its first row, so that buffers that are alive together share none
    order = np.argsort(starts, kind="stable")
    below = np.concatenate([[0], np.maximum.accumulate((starts + rows)[order])])
    above = np.concatenate([starts[order], [ENDLESS]])
    return int(below[np.argmax(above - below >= wanted)])
    # lab 5 end


class Gaps:
    """Gaps in `size` rows, all free at first; neighbouring gaps are one. Each call searches in time logarithmic in the gaps."""

    def __init__(self, size: int) -> None:
        # lab 5 begin: keep the rows that are free, from which spilling takes rows too
        self._rows: dict[int, int] = {0: size}
        self._start_of_end: dict[int, int] = {size: 0}
        self._by_size: list[tuple[int, int]] = [(size, 0)]
        # lab 5 end

    def take(self, rows: int) -> int:
        """The first row of `rows` free rows, which are now in use: in the smallest gap that has them, the lowest of these; -1 for none."""
        # lab 5 begin: keep the rows that are free, from which spilling takes rows too
        position = bisect_left(self._by_size, (rows, -1))
        if position == len(self._by_size):
            return -1
        size, start = self._by_size[position]
        self._remove(start)
        if size > rows:
            self._add(start + rows, size - rows)
        return start
        # lab 5 end

    def give(self, start: int, rows: int) -> None:
        """Frees rows that were taken."""
        # lab 5 begin: keep the rows that are free, from which spilling takes rows too
        below = self._start_of_end.get(start)
        if below is not None:
            rows += self._remove(below)
            start = below
        if start + rows in self._rows:
            rows += self._remove(start + rows)
        self._add(start, rows)
        # lab 5 end

    def _add(self, start: int, rows: int) -> None:
        # lab 5 begin: keep the rows that are free, from which spilling takes rows too
        self._rows[start] = rows
        self._start_of_end[start + rows] = start
        insort(self._by_size, (rows, start))
        # lab 5 end

    def _remove(self, start: int) -> int:
        # lab 5 begin: keep the rows that are free, from which spilling takes rows too
        rows = self._rows.pop(start)
        del self._start_of_end[start + rows]
        del self._by_size[bisect_left(self._by_size, (rows, start))]
        return rows
        # lab 5 end


# The allocation of a program's buffers: which rows of the machine's memory of values each buffer has, and when.


@dataclass(frozen=True, slots=True)
class Stay:
    """A buffer has the memory's rows from `start`, from instruction `first` to instruction `last`, both inclusive."""

    buffer: int
    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Tile instructions (`TILE_RECORD`) whose rows of buffers are rows of the machine's memory.

    Spilling may have added transfers, and host buffers of kind "scratch" to `host`. `lower_bound` is the largest sum of rows alive at one
    time.
    """

    instructions: Records
    stays: tuple[Stay, ...]
    lower_bound: int
    host: tuple[HostBuffer, ...]
    notes: tuple[str, ...] = ()
