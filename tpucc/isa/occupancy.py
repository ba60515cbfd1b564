"""How much of the unified buffer is in use, as time goes by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.isa.program import Resident
from tpucc.numerics import Int64


def rows_in_use(residents: Sequence[Resident], start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The cycles at which the number of rows in use changes, ascending, and the rows in use from each of them on.

    `start` and `end` are the cycles of each instruction. A resident takes its rows from the start of its first instruction to the end of
    its last. Both results are empty when there are no residents; else the last number is 0.
    """
    first, last, rows = np.array([(r.first, r.last, r.rows) for r in residents], np.int64).reshape(-1, 3).T
    return step_function(np.concatenate([start[first], end[last]]), np.concatenate([rows, -rows]))


def step_function(times: Int64, changes: Int64) -> tuple[Int64, Int64]:
    """The times at which a number that was 0 is another than before, ascending, and the number from each of them on.

    At each of `times`, in any order, it changes by the entry of `changes`.
    """
    moments, which = np.unique(times, return_inverse=True)
    sums = np.zeros(len(moments), np.int64)
    np.add.at(sums, which, changes)
    kept = np.flatnonzero(sums)
    return moments[kept], np.cumsum(sums[kept])
