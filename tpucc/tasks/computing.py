"""Computes the tasks of a work: in this process, in several, or on a cluster."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from tpucc.tasks.cluster import computed_on_cluster
from tpucc.tasks.processes import computed_by_processes
from tpucc.tasks.work import Given, Noted, Result, Work

MOST_JOBS = 512
"""Processes at most, whatever is asked for."""


def computed(
    work: Work[Result],
    chunks: Sequence[Sequence[int]],
    given: Given,
    jobs: int,
    scheduler: str | None = None,
    noted: Noted = lambda _: None,
) -> Generator[tuple[int, Result], None, None]:
    """The numbers of all tasks with their results, as they are done: each once, whatever ends. The work is done in `jobs` processes, but in
    no more than there are tasks; in this one when that is 1; or on the Dask cluster of a scheduler. A worker gets a chunk at a time.
    `noted` hears when a cluster has no workers.

    Raises `UsageError` E0562 for a cluster that can't be used.
    """
    if not chunks:
        return
    if scheduler is not None:
        yield from computed_on_cluster(work, chunks, given, scheduler, noted)
    elif (jobs := min(jobs, sum(map(len, chunks)), MOST_JOBS)) > 1:
        yield from computed_by_processes(work, chunks, given, jobs)
    else:
        compute = work.begun()
        yield from ((number, compute(given(number))) for chunk in chunks for number in chunk)
