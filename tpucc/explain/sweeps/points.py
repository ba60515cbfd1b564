"""A sweep: all points of a plan, those that are done already and the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from tpucc.diagnostics import counted
from tpucc.explain.sweeps.journal import Journal
from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.rows import Row, failed, measured, whole
from tpucc.explain.sweeps.shared import Compiler
from tpucc.tasks.computing import computed
from tpucc.tasks.work import Noted, refused


@dataclass(frozen=True)
class Measuring:
    """The rows of a plan's points. `identity` is what the plan is of, for workers that may see other files; None where they can't."""

    plan: Plan
    identity: Mapping[str, Any] | None

    def begun(self) -> Callable[[int], Row]:
        """The row of a point, by a compiler that keeps what points share. Raises `UsageError` E0562 where the files aren't the same."""
        for name, value in self.identity.items() if self.identity is not None else ():
            if (own := self.plan.identity[name]) != value:
                raise refused(f"a worker sees other files: {name} is {own}, not {value}")
        return partial(measured, Compiler(), self.plan)

    def lost(self, how: str) -> Row:
        return failed("E0613", how)


LONGEST = 32
"""Points that a process gets at a time, at most."""
SHARES = 8
"""Chunks for each process, at least where there are enough points: the last ones end at about the same time."""
WORKERS = 16
"""Those that a cluster is taken to have."""
WORTHWHILE = 4
"""Points for which a process of its own is started."""


class Points:
    """The points of a sweep that has ended. Iterating gives its rows in the order of its axes, each a dict of all columns."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self._journal = journal

    def __len__(self) -> int:
        return self.plan.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[point] for point in range(len(self)))

    def __getitem__(self, point: int) -> dict[str, Any]:
        if not 0 <= point < len(self):
            raise IndexError(point)
        return whole(self.plan, point, self._journal.row(point))

    def __repr__(self) -> str:
        return f"<Sweep of {', '.join(self.plan.models)}: {counted(len(self), 'point')}>"


def run(
    plan: Plan,
    journal: Journal,
    jobs: int | None = None,
    scheduler: str | None = None,
    told: Callable[[int], None] = lambda _: None,
    noted: Noted = lambda _: None,
) -> Points:
    """Computes what is missing: in `jobs` processes, in this one when that is 1, or on a Dask cluster. `told` gets the count of points that
    are done, after each; `noted` hears when a cluster has no workers."""
    missing = plan.order(journal.missing)
    done = plan.count - len(missing)
    told(done)
    jobs = jobs or max(1, min(os.cpu_count() or 1, len(missing) // WORTHWHILE))
    chunks = list(_chunks(missing, jobs if scheduler is None else WORKERS))
    work = Measuring(plan, None if scheduler is None else plan.identity)
    with closing(computed(work, chunks, lambda point: point, jobs, scheduler, noted)) as found:
        for point, row in found:
            journal.add(point, row)
            done += 1
            told(done)
    return Points(plan, journal)


def _chunks(points: Sequence[int], jobs: int) -> Iterator[Sequence[int]]:
    size = max(1, min(LONGEST, len(points) // (jobs * SHARES)))
    return (points[start : start + size] for start in range(0, len(points), size))
