"""The term's arithmetic of quantised values: what a submission's answers are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tpucc.labs.lab import Term
from tpucc.numerics import ZERO_SCALE, AnyArray, Float32, Float64, Int64

Ties = Literal["even", "away", "zero"]
SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest scale: a normal float32."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The bits of an integer, where ties go, and whether the zero point of a range is always 0."""

    bits: int
    ties: Ties
    symmetric: bool

    @property
    def low(self) -> int:
        """The smallest integer."""
        return -(1 << self.bits - 1)

    @property
    def high(self) -> int:
        """The largest integer; weights are integers from -high to high."""
        return (1 << self.bits - 1) - 1

    def parameters(self, low: float, high: float) -> tuple[float, float]:
        """Scale and zero point of a range, in float64: the zero point before it is rounded."""
        # lab 3 begin: divide, round and saturate as the term says
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        steps = self.high if self.symmetric else self.high - self.low
        scale = float(np.float32((max(-low, high) if self.symmetric else high - low) / steps))
        if scale < SMALLEST:
            return ZERO_SCALE, 0.0
        return scale, 0.0 if self.symmetric else min(max(self.low - low / scale, self.low), self.high)
        # lab 3 end

    def quantise(self, x: AnyArray, scale: float, zero_point: int) -> Int64:
        """`saturate(round(float32(x) / float32(scale)) + zero_point)`."""
        # lab 3 begin: divide, round and saturate as the term says
        with np.errstate(over="ignore"):
            return self._saturated(x.astype(np.float32) / np.float32(scale), zero_point)
        # lab 3 end

    def requantise(self, accumulators: AnyArray, multiplier: AnyArray | float, zero_point: int) -> Int64:
        """`saturate(round(float32(accumulator) * float32(multiplier)) + zero_point)`."""
        # lab 3 begin: divide, round and saturate as the term says
        with np.errstate(over="ignore"):
            return self._saturated(accumulators.astype(np.float32) * np.asarray(multiplier, np.float32), zero_point)
        # lab 3 end

    def quantise_weights(self, weights: Float32) -> tuple[Int64, Float32]:
        """Symmetric integers of weights [K, N], and the scale of each column; 1 for a column of nothing but zeros."""
        # lab 3 begin: divide, round and saturate as the term says
        scales = np.abs(weights).max(axis=0, initial=0) / np.float32(self.high)
        scales = np.where(scales < SMALLEST, np.float32(1), scales)
        return np.clip(self.rounded(weights / scales), -self.high, self.high).astype(np.int64), scales
        # lab 3 end

    def rounded(self, x: AnyArray) -> Float64:
        """To the nearest integer, in float64: there the half of a float32 value is exact."""
        # lab 3 begin: divide, round and saturate as the term says
        wide = x.astype(np.float64)
        if self.ties == "even":
            return np.rint(wide)
        size = np.floor(np.abs(wide) + 0.5) if self.ties == "away" else np.ceil(np.abs(wide) - 0.5)
        nearest: Float64 = np.copysign(size, wide)
        return nearest
        # lab 3 end

    def _saturated(self, x: AnyArray, zero_point: int) -> Int64:
        # lab 3 begin: divide, round and saturate as the term says
        whole: Int64 = np.clip(self.rounded(x) + zero_point, self.low, self.high).astype(np.int64)
        return whole
        # lab 3 end


TIE_WORDS = {"even": "to the even integer", "away": "to the integer farther from zero", "zero": "to the integer nearer to zero"}


def rules(term: Term) -> Rules:
    """The rules of a term; without one they are the machine's own (docs/numerics.md)."""
    draw = term.draw("quantisation")
    if draw is None:
        return Rules(8, "even", False)
    return Rules(draw.choice((6, 7, 8)), draw.choice(("away", "zero")), draw.choice((False, True)))
