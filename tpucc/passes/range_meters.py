"""How calibration chooses a range from the values that it sees: one meter a method, which collects the values of one tensor.

A meter sees the values batch by batch, with the smallest and the largest of each batch; then it says the range.
"""

from __future__ import annotations

import math

import numpy as np

from tpucc.ir import Range
from tpucc.numerics import AnyArray


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
