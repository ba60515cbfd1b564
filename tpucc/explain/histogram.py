"""Histograms of values that come batch by batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tpucc.numerics import Float64

BINS = 64
"""A histogram that is shown has at most so many bins, and more than half as many less one."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie in each bin: bin i is [start + i · width, start + (i + 1) · width).

    The bins cover the values and the range of the integers. A layer's value that rounds to an end of this range lies in the bin within.
    `width` is a power of two and `start` a multiple of it.
    """

    start: float
    width: float
    counts: tuple[int, ...]

    @property
    def stop(self) -> float:
        return self.start + self.width * len(self.counts)


class Counter:
    """A histogram of at most `bins` bins that grows with its values: when they need more, pairs of bins become one.

    `low` and `high` are to be covered from the start. Counts don't depend on the order in which values come.
    """

    def __init__(self, low: float, high: float, bins: int = BINS) -> None:
        self._low, self._high = low, high
        self._bins = bins
        self._width = _bin_width(low, high, bins)
        self._first = math.floor(low / self._width)
        self._counts = np.zeros(self._bins, np.int64)

    def add(self, values: Float64, low: float, high: float) -> None:
        self._stretch(min(self._low, low), max(self._high, high))
        bins = np.floor(values / self._width).astype(np.int64) - self._first
        self._counts += np.bincount(bins, minlength=self._bins)

    def histogram(self) -> Histogram:
        used = math.floor(self._high / self._width) - self._first + 1
        return Histogram(self._first * self._width, self._width, tuple(self._counts[:used].tolist()))

    def _stretch(self, low: float, high: float) -> None:
        if (low, high) == (self._low, self._high):
            return
        self._low, self._high = low, high
        before, old = self._width, self._first + np.flatnonzero(self._counts)
        counts = self._counts[self._counts > 0]
        self._width = _bin_width(low, high, self._bins)
        self._first = math.floor(low / self._width)
        self._counts = np.zeros(self._bins, np.int64)
        np.add.at(self._counts, np.floor(old * (before / self._width)).astype(np.int64) - self._first, counts)


def _bin_width(low: float, high: float, bins: int) -> float:
    """The smallest power of two of which `bins` bins, beginning at multiples of it, cover low…high."""
    width = 2.0 ** (math.frexp((high - low) / bins)[1] - 1)
    while math.floor(high / width) - math.floor(low / width) >= bins:
        width *= 2
    return width
