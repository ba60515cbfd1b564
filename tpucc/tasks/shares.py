"""Tasks in an order in which neighbours share work, divided among processes that are not equally fast."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from threading import Lock

PARTS = 8
"""A process gets this part of what is left of its share at a time: the last ones get one task each, and end at about the same time."""


class Shares:
    """Each process has a share of neighbours and gets some from its beginning; one that has none left takes over the later half of the
    longest other share. So what neighbours have in common is made again only where two shares meet. Threads may call it."""

    def __init__(self, tasks: Sequence[int], processes: int, longest: int) -> None:
        """At most `longest` tasks are given at a time."""
        places = [len(tasks) * process // processes for process in range(processes + 1)]
        self._shares = [deque(tasks[start:end]) for start, end in pairwise(places)]
        self._longest = longest
        self._lock = Lock()

    def next(self, process: int) -> list[int]:
        """The tasks that a process gets next; none where nothing is left."""
        with self._lock:
            own = self._shares[process]
            if not own:
                most = max(self._shares, key=len)
                own.extendleft(most.pop() for _ in range((len(most) + 1) // 2))
            count = min(len(own), self._longest, max(1, len(own) // PARTS))
            return [own.popleft() for _ in range(count)]

    def give_back(self, process: int, tasks: Sequence[int]) -> None:
        """Puts back what a process didn't do."""
        with self._lock:
            self._shares[process].extendleft(reversed(tasks))
