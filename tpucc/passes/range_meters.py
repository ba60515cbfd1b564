"""How calibration chooses a range from the values that it sees: one meter a method, which collects the values of one tensor.

The methods that cut values off look at a histogram. Its counts, and all sums of them, are integers, so no order of adding matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tpucc.floating.double import log
from tpucc.ir import Range
from tpucc.ir.dtypes import IntegerFormat
from tpucc.numerics import AnyArray, Float64, Int64

RANGE_BINS = 2048
"""Bins of the histogram from which a range is chosen: eight a step of 8 bits."""
RAREST = 1e-6
"""The least share of values that a level is taken to stand for, so that one value that is cut off isn't an infinite divergence."""
DIVERGENCE_DIGITS = 9
"""Decimals of a divergence that count: less is a difference of roundings."""


# Histograms of values that come batch by batch.


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


# How calibration chooses a range from the values that it sees


class Meter(Protocol):
    """Sees the values of a tensor batch by batch, with the smallest and the largest of each; then says the range."""

    def add(self, values: AnyArray, extremes: Range) -> None: ...
    def range(self) -> Range: ...


class Extremes:
    """The smallest and the largest value. Models of thousands of small values spend their calibration here."""

    def __init__(self) -> None:
        self._low, self._high = math.inf, -math.inf

    def add(self, _: AnyArray, extremes: Range) -> None:
        self._low, self._high = min(self._low, extremes.low), max(self._high, extremes.high)

    def range(self) -> Range:
        return Range(self._low, self._high)


class Tails:
    """The smallest and the largest value when the `cut` smallest and the `cut` largest are left out; keeps no others."""

    def __init__(self, cut: int) -> None:
        self._cut = cut
        self._lowest = self._highest = np.empty(0, np.float32)

    def add(self, values: AnyArray, _: Range) -> None:
        values = values.reshape(-1)
        self._lowest = self._least(np.concatenate([self._lowest, values]))
        self._highest = -self._least(-np.concatenate([self._highest, values]))

    def range(self) -> Range:
        return Range(float(self._lowest.max()), float(self._highest.min()))

    def _least(self, values: AnyArray) -> AnyArray:
        return values if values.size <= self._cut + 1 else np.partition(values, self._cut)[: self._cut + 1]


Choice = Callable[[Histogram, IntegerFormat], tuple[int, int]]
"""Chooses the bins that a range covers: the first, and the one after the last. Zero lies in them, or at their edge."""


class Binned:
    """The range that `choose` finds in a histogram of the values, without the zeros: each range has an integer for 0, and no error there.

    Where no value is cut off, the range ends at the value itself, not at its bin's edge.
    """

    def __init__(self, choose: Choice, to: IntegerFormat) -> None:
        self._choose = choose
        self._to = to
        self._counter: Counter | None = None
        self._seen: Range | None = None

    def add(self, values: AnyArray, extremes: Range) -> None:
        seen = self._seen or extremes
        self._seen = Range(min(seen.low, extremes.low), max(seen.high, extremes.high))
        low, high = min(self._seen.low, 0.0), max(self._seen.high, 0.0)
        if low < high:
            self._counter = self._counter or Counter(low, high, RANGE_BINS)
            self._counter.add(values[values != 0].astype(np.float64), low, high)

    def range(self) -> Range:
        assert self._seen is not None
        if self._counter is None:
            return self._seen
        found = self._counter.histogram()
        first, stop = self._choose(found, self._to)
        low, high = found.start + found.width * first, found.start + found.width * stop
        return Range(max(low, min(self._seen.low, high)), min(high, max(self._seen.high, low)))


def least_squares(found: Histogram, to: IntegerFormat) -> tuple[int, int]:
    """The bins for which the squared error of quantising is least; of all pairs of ends, the widest.

    A value inside the range is rounded: its squared error is step²/12 in the mean (Bennett, "Spectra of Quantized Signals", 1948). One
    outside saturates: its squared error is that of its distance, for which the middle of its bin stands in.
    """
    counts, zero = np.asarray(found.counts, np.int64), _zero_of(found)
    below, above = _beyond(counts[:zero][::-1])[::-1], _beyond(counts[zero:])
    lows, highs = np.arange(-zero, 1)[:, np.newaxis], np.arange(len(counts) - zero + 1)[np.newaxis]
    widths = 2 * (np.maximum(-lows, highs) if to.symmetric else highs - lows)  # in halves of a bin, as the distances beyond are
    steps = widths / (to.high if to.symmetric else to.high - to.low)
    inside = counts.sum() - _count_beyond(counts[:zero][::-1])[::-1][:, np.newaxis] - _count_beyond(counts[zero:])[np.newaxis]
    errors: Float64 = inside * steps**2 / 12 + (below[:, np.newaxis] + above[np.newaxis])
    best = np.argwhere(errors == errors.min())
    low, high = max(best.tolist(), key=lambda ends: ends[1] - ends[0])
    return low, zero + high


def least_divergence(found: Histogram, to: IntegerFormat) -> tuple[int, int]:
    """The bins whose distribution loses least when it is quantised, by the divergence of Kullback and Leibler; the widest of them.

    The range is cut at one magnitude on both sides. What is cut off counts at the edge, as it saturates (Migacz, "8-bit Inference with
    TensorRT", 2017). A format of more than 8 bits has more integers than a histogram bins: it cuts nothing.
    """
    counts, zero = np.asarray(found.counts, np.int64), _zero_of(found)
    sides = [side for side in (counts[:zero][::-1], counts[zero:]) if len(side)]
    length = max(map(len, sides))
    magnitudes = sum(np.pad(side, (0, length - len(side))) for side in sides)
    assert isinstance(magnitudes, np.ndarray)
    levels = (to.high - to.low + 1) // len(sides)
    ends = range(length, levels - 1, -max(1, levels // 16)) or range(length, length + 1)
    end = min(ends, key=lambda stop: _divergence(magnitudes, stop, levels))
    return max(0, zero - end), min(len(counts), zero + end)


def _divergence(counts: Int64, stop: int, levels: int) -> float:
    """Σ p · log(p / q) over the bins before `stop`: p are the values, those beyond in the last bin; q the same in `levels` levels of bins,
    each value spread over the bins of its level that have any."""
    kept = counts[:stop]
    values = kept.copy()
    values[-1] += counts[stop:].sum()
    levels_of = np.arange(stop) * levels // stop
    totals = np.bincount(levels_of, kept)
    sharing = np.bincount(levels_of, kept > 0)
    spread = np.where(kept > 0, (totals / np.maximum(sharing, 1))[levels_of], 0.0)
    there = values > 0
    p, q = values[there] / values.sum(), np.maximum(spread[there] / max(1, kept.sum()), RAREST)
    return round(float(np.add.accumulate(p * log(p / q))[-1]), DIVERGENCE_DIGITS)


def _zero_of(found: Histogram) -> int:
    """The number of the bin that begins at zero; that of the end where all values are below."""
    return round(-found.start / found.width)


def _count_beyond(counts: Int64) -> Int64:
    """For each edge of bins that go outwards from zero, the number of values beyond it; int64 [bins + 1]."""
    return np.concatenate([counts[::-1].cumsum()[::-1], np.zeros(1, np.int64)])


def _beyond(counts: Int64) -> Int64:
    """For each edge the squared distances of the values beyond it, Σ n · (c - e)², in halves of a bin: bin i has its middle at c = 2i + 1,
    and edge i is e = 2i. Expanded, Σ n·c² - 2e · Σ n·c + e² · Σ n, each sum is one of all edges. int64 [bins + 1]."""
    middles, edges = 2 * np.arange(len(counts)) + 1, 2 * np.arange(len(counts) + 1)
    zeroth, first, second = (_count_beyond(counts * middles**power) for power in range(3))
    squares: Int64 = second - 2 * edges * first + edges**2 * zeroth
    return squares


CHOICES: Mapping[str, Choice] = {"mse": least_squares, "entropy": least_divergence}
"""The methods that look at a histogram."""
METHODS = ("minmax", "percentile", *CHOICES)
