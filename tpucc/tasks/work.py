"""What workers do, and how it is given to them."""

from __future__ import annotations

from collections.abc import Callable
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


def refused(text: str) -> UsageError:
    """The error of a cluster that can't be used."""
    mend = "tcp://HOST:8786 is what `dask scheduler` prints; workers need this tpucc, a sweep's the models' files under the same names"
    return UsageError(Diagnostic("E0562", text, help=(mend,)))
