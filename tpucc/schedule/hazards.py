"""Which instructions must wait for which: conflicts between engines over rows of the unified buffer and of the accumulators.

An instruction that reads a row must come after the last write to it; one that writes a row, after the last write and all reads. Only
conflicts between engines matter here, for each engine keeps the order of its own instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import Bools, Effects, Walks
from tpucc.isa.instructions import Engine
from tpucc.numerics import AnyArray, Int64

ENGINES = len(Engine)
ROW_ENGINES = (Engine.HOST, Engine.MATRIX, Engine.ACTIVATION)
"""Engines that touch rows."""
ACCUMULATORS = 2**40
"""Accumulator rows are numbered from here, far from those of the unified buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class _Accesses:
    """Stretches of rows [low, high) that instructions touch, and whether they write them."""

    instruction: Int64
    low: Int64
    high: Int64
    writes: Bools


def conflicts(touched: Effects) -> Int64:
    """[instructions, engines]: the last earlier instruction of each other engine that an instruction must wait for, or -1."""
    accesses = _accesses(touched)
    instruction, writes, start = _by_segment(accesses)
    engine = touched.engine[instruction]
    needs = np.full((len(touched), ENGINES), -1, np.int64)
    for other in ROW_ENGINES:
        theirs = engine == other
        wrote, used = _last(theirs & writes, start), _last(theirs, start)
        last = np.where(writes, used, wrote)
        waits = (last >= 0) & ~theirs
        np.maximum.at(needs[:, other], instruction[waits], instruction[last[waits]])
    return needs


def _accesses(touched: Effects) -> _Accesses:
    parts = [
        *_walked(touched.source, False),
        *_walked(touched.source2, False),
        *_walked(touched.target, True),
        _accumulated(touched),
    ]
    columns = [np.concatenate([getattr(part, column) for part in parts]) for column in ("instruction", "low", "high", "writes")]
    return _Accesses(*columns)


def _accumulated(touched: Effects) -> _Accesses:
    """A multiply that accumulates counts as a write: what must wait for its reading must wait for its writing."""
    used = np.flatnonzero(touched.acc_end > touched.acc_start)
    low, high = touched.acc_start[used] + ACCUMULATORS, touched.acc_end[used] + ACCUMULATORS
    return _Accesses(used, low, high, touched.acc_writes[used])


def _walked(walks: Walks, writes: bool) -> list[_Accesses]:
    """The rows of walks: one stretch for those without holes, several for each of the others."""
    dense = np.flatnonzero(walks.used & walks.dense)
    parts = [_Accesses(dense, walks.low[dense], walks.high[dense], np.full(len(dense), writes))]
    for index in np.flatnonzero(walks.used & ~walks.dense).tolist():
        rows = walks.rows(index)
        cuts = np.flatnonzero(np.diff(rows) > 1)
        low, high = np.concatenate([rows[:1], rows[cuts + 1]]), np.concatenate([rows[cuts], rows[-1:]]) + 1
        parts.append(_Accesses(np.full(len(low), index), low, high, np.full(len(low), writes)))
    return parts


def _by_segment(accesses: _Accesses) -> tuple[Int64, Bools, Int64]:
    """The accesses cut at each other's bounds, segment by segment and each in program order: instruction, writes, first of the segment."""
    bounds = np.unique(np.concatenate([accesses.low, accesses.high]))
    first, end = np.searchsorted(bounds, accesses.low), np.searchsorted(bounds, accesses.high)
    count = end - first
    source = np.repeat(np.arange(len(count)), count)
    segment = np.arange(len(source)) - np.repeat(np.cumsum(count) - count - first, count)
    order = np.lexsort((accesses.instruction[source], segment))
    segment, source = segment[order], source[order]
    begins = np.diff(segment, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(begins, np.arange(len(segment)), 0))
    return accesses.instruction[source], accesses.writes[source], start


def _last(among: Bools, start: Int64) -> Int64:
    """For each access the position of the latest one before it, in its segment, of those in `among`; -1 for none."""
    latest: AnyArray = np.maximum.accumulate(np.where(among, np.arange(len(among)), -1))
    before = np.concatenate([[-1], latest[:-1]])[: len(among)]
    return np.where(before >= start, before, -1)
