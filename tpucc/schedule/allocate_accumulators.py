"""Allocation of accumulator groups. A group is a number of accumulator rows that sums are made in together.

Groups take the accumulators in turn, as a ring buffer: the rows just used are used again as late as possible, so that `activate` empties
some while the matrix unit fills others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError
from tpucc.lowering.liveness import live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Full, Lives, linear_scan


def allocate_accumulators(tiles: TileProgram) -> Int64:
    """The first accumulator row of each group: int64 [groups]; 0 for a group that no instruction uses.

    Groups whose lives overlap follow each other round the ring, in the order of their first use; where they take more rows than there are,
    each lies where rows are free. Raises `LimitError` E0623 when no such rows lie together.
    """
    first, last = live_ranges(tiles.instructions, len(tiles.groups), ("group",))
    starts = np.zeros(len(tiles.groups), np.int64)
    memory, place = tiles.machine.holding(Contents.SUMS), 0
    room = memory.size(tiles.target) if memory is not None else 0
    for cohort in _cohorts(first, last):
        sizes = [tiles.groups[group] for group in cohort]
        total = sum(sizes)
        if total > room:
            starts[cohort] = _in_gaps(Lives(first[cohort], last[cohort], np.array(sizes)), room)
            continue
        found = _ring(sizes, place, room)
        starts[cohort], place = found, found[-1] + sizes[-1]
    return starts


def _ring(sizes: Sequence[int], place: int, room: int) -> list[int]:
    """The first row of each group, one after the other from row `place` on and, past the end, from row 0; all from row 0 where the groups
    would overlap."""
    starts, at = list[int](), place
    for size in sizes:
        at = at if at + size <= room else 0
        starts.append(at)
        at += size
    collides = min(starts) < starts[0] < at  # the last groups begin at row 0 and reach the first one
    return [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)] if collides else starts


def _cohorts(first: Int64, last: Int64) -> Iterator[list[int]]:
    """The groups in the order of their first use; groups that overlapping lives connect are one cohort."""
    cohort: list[int] = []
    end = -1
    order = [group for group in np.argsort(first, kind="stable").tolist() if last[group] >= 0]
    for group, begin, finish in zip(order, first[order].tolist(), last[order].tolist(), strict=True):
        if begin > end and cohort:
            yield cohort
            cohort = []
        cohort.append(group)
        end = max(end, finish)
    if cohort:
        yield cohort


def _in_gaps(lives: Lives, room: int) -> Int64:
    """The first row of each group that doesn't fit beside the others: rows that are free at the group's first use."""
    try:
        return linear_scan(lives, room)
    except Full as error:
        message = f"a product needs {error.rows:,} accumulator rows together while {error.used:,} of {room:,} are in use"
        raise LimitError(Diagnostic("E0623", message, help=("cut the rows into smaller chunks, or activate sums earlier",))) from None
