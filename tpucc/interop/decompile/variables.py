"""Names of variables with the smallest numbers that are free, found without trying those that are known to be taken."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Numbers:
    """The names `wanted`, `wanted2`, `wanted3` and so on, of which each is taken up to a place. The places that are asked for only rise."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self._taken: list[tuple[float, int]] = []
        """A heap of places and numbers: each number is taken up to its place."""
        self._tried: list[int] = []
        """A heap of numbers that may be free."""
        self._next = 1
        """The first number that nobody has asked for."""

    def free(self, place: int, end: Callable[[str], float], is_taken: Callable[[str], bool]) -> str:
        """The first name that isn't taken at a place. `end` says up to which place a name is taken for every value, and `is_taken` whether
        it is for the value that is to have it."""
        while self._taken and self._taken[0][0] <= place:
            heappush(self._tried, heappop(self._taken)[1])
        passed: list[int] = []
        while is_taken(name := self._name(number := self._candidate())):
            passed.append(number)
        for other in (*passed, number):
            if (last := end(self._name(other))) > place:
                heappush(self._taken, (last, other))
            else:
                heappush(self._tried, other)
        return name

    def _candidate(self) -> int:
        if self._tried:
            return heappop(self._tried)
        self._next += 1
        return self._next - 1

    def _name(self, number: int) -> str:
        return self._wanted if number == 1 else f"{self._wanted}{number}"
