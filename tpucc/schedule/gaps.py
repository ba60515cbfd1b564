"""Free rows of a memory, as gaps between what is in use."""

from __future__ import annotations

from bisect import bisect_left, insort


class Gaps:
    """Gaps in `size` rows, all free at first; neighbouring gaps are one. Each call searches in time logarithmic in the gaps."""

    def __init__(self, size: int) -> None:
        self._rows: dict[int, int] = {0: size}
        self._start_of_end: dict[int, int] = {size: 0}
        self._by_size: list[tuple[int, int]] = [(size, 0)]

    def take(self, rows: int) -> int:
        """The first row of `rows` free rows, which are now in use: in the smallest gap that has them, the lowest of these; -1 for none."""
        position = bisect_left(self._by_size, (rows, -1))
        if position == len(self._by_size):
            return -1
        size, start = self._by_size[position]
        self._remove(start)
        if size > rows:
            self._add(start + rows, size - rows)
        return start

    def give(self, start: int, rows: int) -> None:
        """Frees rows that were taken."""
        below = self._start_of_end.get(start)
        if below is not None:
            rows += self._remove(below)
            start = below
        if start + rows in self._rows:
            rows += self._remove(start + rows)
        self._add(start, rows)

    def _add(self, start: int, rows: int) -> None:
        self._rows[start] = rows
        self._start_of_end[start + rows] = start
        insort(self._by_size, (rows, start))

    def _remove(self, start: int) -> int:
        rows = self._rows.pop(start)
        del self._start_of_end[start + rows]
        del self._by_size[bisect_left(self._by_size, (rows, start))]
        return rows
