"""The term's arithmetic of quantised values: what a submission's answers are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tpucc.labs.lab import Term
from tpucc.labs.solutions import Solution

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

    def zero_point(self, low: float, scale: float) -> float:
        """The zero point of a range that begins at `low`, in float64, before it is rounded."""
        return 0.0 if self.symmetric else min(max(self.low - min(low, 0.0) / scale, self.low), self.high)

    @property
    def zero_rule(self) -> str:
        """The rule of the zero point in words."""
        return "the zero point is always 0" if self.symmetric else f"the zero point is round({self.low} - low / scale), at most {self.high}"

    @property
    def ties_go(self) -> str:
        """Where ties go, in words."""
        return {"even": "to the even integer", "away": "to the integer farther from zero", "zero": "to the integer nearer to zero"}[
            self.ties
        ]

    @property
    def solution(self) -> Solution:
        """The lab's own functions under these rules."""
        return Solution.of(Path(__file__).parent, self)


def rules(term: Term) -> Rules:
    """The rules of a term; without one they are the machine's own (docs/numerics.md)."""
    draw = term.draw("quantisation")
    if draw is None:
        return Rules(8, "even", False)
    return Rules(draw.choice((6, 7, 8)), draw.choice(("away", "zero")), draw.choice((False, True)))
