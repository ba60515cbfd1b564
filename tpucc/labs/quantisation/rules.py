"""The term's arithmetic of quantised values, and what a submission answers, checked: raises `Failed` with the first difference.

An archive for students has recorded the solution's answers to what the public tests ask it. Where inputs depend on the submission's own
scales, its answers are taken there as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tpucc.guest.values import Plain
from tpucc.labs.judging import integers as plain_integers
from tpucc.labs.lab import Submission, Term
from tpucc.labs.solutions import Solution
from tpucc.numerics import AnyArray, Float32, Int64, place_of_largest
from tpucc.plugins.failures import Failed

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


def exact_integers(
    rules: Rules, function: Literal["quantise", "requantise"], submission: Submission, values: AnyArray, factor: AnyArray | float, zero: int
) -> Int64:
    """The integers of `quantise` or `requantise`, which must be exact."""
    expected = rules.solution.answer(function, values, factor, zero)
    found = integers(submission.call(function, values, factor, zero), values.shape, function)
    if expected is None:
        return np.clip(found, rules.low, rules.high)

    _require_equal(found, expected, lambda place: element_text(function, values, factor, zero, place))
    return found


def element_text(function: str, values: AnyArray, factor: AnyArray | float, zero: int, place: tuple[int, ...]) -> str:
    """What an element becomes an integer of, in words, and whether it is a tie."""
    by = factor if isinstance(factor, float) else np.broadcast_to(factor, values.shape)[place]
    of, factor_of = ("value", "scale") if function == "quantise" else ("accumulator", "multiplier")
    given = f"{of} {values[place]!s}, {factor_of} {by!s}, zero point {zero}{_tie(function, values[place], by)}"
    return f"{function}, element {list(place)}: {given}"


def _require_equal(found: AnyArray, expected: AnyArray, said: Callable[[tuple[int, ...]], str]) -> None:
    """Raises `Failed` with the first place that differs, and what is `said` of it."""
    if (found != expected).any():
        place = place_of_largest(found != expected)
        raise Failed("wrong", f"{said(place)}: expected {expected[place]}, found {found[place]}")


def _tie(function: str, value: AnyArray, by: AnyArray | float) -> str:
    """`; the quotient -15.5 is a tie`, of a value's quotient or an accumulator's product, where it is one."""
    with np.errstate(all="ignore"):  # at the extremes it is infinite, and no tie
        exact = np.float32(value) / np.float32(by) if function == "quantise" else np.float32(value) * np.float32(by)
        tie = np.abs(exact) % 1 == 0.5
    name = "quotient" if function == "quantise" else "product"
    return f"; the {name} {exact:g} is a tie" if tie else ""


def exact_weights(rules: Rules, submission: Submission, weights: Float32) -> tuple[Int64, Float32]:
    """The integers and scales of `quantise_weights`, which must be exact."""
    known = rules.solution.answer("quantise_weights", weights)
    answer = submission.call("quantise_weights", weights)
    if not isinstance(answer, list) or len(answer) != 2:
        raise Failed("result", "quantise_weights returned no pair (integers, scales)")
    found_scales = _floats(answer[1], weights.shape[1:])
    if known is None:
        if not (found_scales >= SMALLEST).all():
            raise Failed("wrong", f"quantise_weights returned a scale below {SMALLEST:.4g}, the smallest normal float32")
        own = integers(answer[0], weights.shape, "quantise_weights")
        return np.clip(own, -rules.high, rules.high), found_scales.astype(np.float32)
    expected, scales = known
    _require_equal(found_scales, scales, lambda n: f"scale of column {n[0]}, whose largest magnitude is {np.abs(weights[:, n[0]]).max()}")
    found = integers(answer[0], weights.shape, "quantise_weights")
    _require_equal(found, expected, lambda place: f"weight {weights[place]} at {list(place)}, scale {scales[place[1]]}")
    return found, scales


def pair(answer: Plain, rules: Rules) -> tuple[float, int]:
    """A scale and a zero point that integers of these bits can have."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise Failed("result", "returned no pair (scale, zero_point)")
    scale, zero = float(_floats(answer[0], ())), int(integers(answer[1], (), "the zero point"))
    if not SMALLEST <= scale <= np.finfo(np.float32).max:
        raise Failed("wrong", f"returned the scale {scale:g}; a scale is a normal float32, from {SMALLEST:.4g}")
    if not rules.low <= zero <= rules.high:
        raise Failed("wrong", f"returned the zero point {zero}; integers are {rules.low} to {rules.high}")
    if rules.symmetric and zero != 0:
        raise Failed("wrong", f"returned the zero point {zero}; ranges are symmetric, so that it is 0")
    return float(np.float32(scale)), zero


def integers(answer: Plain, shape: tuple[int, ...], what: str) -> Int64:
    """An array of integers of this shape."""
    try:
        found = plain_integers(answer, shape, f"integers of shape {list(shape)}" if shape else "an integer")
    except Failed as failure:
        raise Failed("result", f"{what}: {failure.message}") from None
    whole: Int64 = np.clip(found, -(2**62), 2**62).astype(np.int64)
    return whole


def _floats(answer: Plain, shape: tuple[int, ...]) -> AnyArray:
    """Finite numbers of this shape."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        raise Failed("result", "returned a scale that is no number") from None
    if found.shape != shape or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        shown = f"scales of {found.dtype} of shape {list(found.shape)}" if found.ndim else f"the scale {str(answer)[:40]}"
        expected = f"finite numbers of shape {list(shape)}" if shape else "a finite number"
        raise Failed("result", f"returned {shown}, expected {expected}")
    return found
