"""What workers do, and how it is given to them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

from tpucc.diagnostics import Diagnostic, UsageError

Result = TypeVar("Result", covariant=True)
Given = Callable[[int], Any]
"""What a worker gets of a task: mostly its number; the whole of it where a worker can't read it for itself."""

Noted = Callable[[str], None]
"""Gets a sentence about how the work goes, in any thread."""


class Work(Protocol[Result]):
    """What many tasks have in common. It is pickled for workers, and so are what they get of each task and what they return."""

    def begun(self) -> Callable[[Any], Result]:
        """The function that a worker calls for each task; asked for once by each. What is wrong with a task is a result, not an exception.
        Raises `UsageError` E0562 where this worker can't take part."""

    def lost(self, how: str) -> Result:
        """The result of a task at which workers ended."""


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
        from tpucc.tasks.cluster import computed_on_cluster  # needs an extra

        yield from computed_on_cluster(work, chunks, given, scheduler, noted)
    elif (jobs := min(jobs, sum(map(len, chunks)), MOST_JOBS)) > 1:
        from tpucc.tasks.processes import computed_by_processes

        yield from computed_by_processes(work, chunks, given, jobs)
    else:
        compute = work.begun()
        yield from ((number, compute(given(number))) for chunk in chunks for number in chunk)


def refused(text: str) -> UsageError:
    """The error of a cluster that can't be used."""
    mend = "tcp://HOST:8786 is what `dask scheduler` prints; workers need this tpucc, a sweep's the models' files under the same names"
    return UsageError(Diagnostic("E0562", text, help=(mend,)))
