"""Accumulator rows for the groups of a tile program.

Groups go round the accumulators like round a ring, each for itself: the rows just used are used again as late as possible, so that activate
empties some while the matrix unit fills others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Gaps


def place_groups(tiles: TileProgram) -> Int64:
    """The first accumulator row of each group; 0 for one that no instruction uses.

    Groups whose lives overlap are placed side by side, in the order of their first use. Raises `LimitError` E0623 when that takes more
    rows than there are and no other place is free.
    """
    first, last = _lives(tiles)
    starts = np.zeros(len(tiles.groups), np.int64)
    room, place = tiles.target.accumulator_rows, 0
    for cohort in _cohorts(first, last):
        sizes = [tiles.groups[group] for group in cohort]
        total = sum(sizes)
        if total > room:
            starts[cohort] = _squeezed(cohort, sizes, first, last, room)
            continue
        starts[cohort] = found = _ring(sizes, place, room)
        place = found[-1] + sizes[-1]
    return starts


def _ring(sizes: Sequence[int], place: int, room: int) -> list[int]:
    """Places one after the other from `place` on and, past the end, from row 0; all from row 0 where the ring would close on itself."""
    starts, at = list[int](), place
    for size in sizes:
        at = at if at + size <= room else 0
        starts.append(at)
        at += size
    closed = min(starts) < starts[0] < at
    return [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)] if closed else starts


def _lives(tiles: TileProgram) -> tuple[Int64, Int64]:
    """First and last instruction of each group; a group that none uses ends before it begins."""
    first, last = np.full(len(tiles.groups), len(tiles.instructions), np.int64), np.full(len(tiles.groups), -1, np.int64)
    position = np.flatnonzero(tiles.instructions["group"] >= 0)
    group = tiles.instructions["group"][position]
    np.minimum.at(first, group, position)
    np.maximum.at(last, group, position)
    return first, last


def _cohorts(first: Int64, last: Int64) -> Iterator[list[int]]:
    """The groups in the order of their first use, those together that are connected by overlapping lives."""
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


def _squeezed(cohort: Sequence[int], sizes: Sequence[int], first: Int64, last: Int64, room: int) -> list[int]:
    """Places for groups that don't fit side by side: each takes rows that are free at its first use."""
    gaps = Gaps(room)
    alive: list[tuple[int, int, int]] = []
    starts = []
    for group, rows in zip(cohort, sizes, strict=True):
        for _, start, size in [entry for entry in alive if entry[0] < first[group]]:
            gaps.give(start, size)
        alive = [entry for entry in alive if entry[0] >= first[group]]
        start = gaps.take(rows)
        if start < 0:
            raise _full(rows, sum(size for _, _, size in alive), room)
        alive.append((int(last[group]), start, rows))
        starts.append(start)
    return starts


def _full(rows: int, used: int, room: int) -> LimitError:
    message = f"a product needs {rows:,} accumulator rows while {used:,} of {room:,} are in use"
    return LimitError(Diagnostic("E0623", message, help=("cut the rows into smaller chunks, or activate sums earlier",)))
