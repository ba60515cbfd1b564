"""The term's arithmetic of quantised values, and what a submission answers, checked: raises `Failed` with the first difference.

An archive for students has recorded the solution's answers to what the public tests ask it. The integers of a network depend on the
submission's own scales: there the nearest ones are computed, of which a tie has two. So its points are for its noise, and a mistake about
ties loses those of the tests that are about ties.
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
from tpucc.numerics import AnyArray, Float32, Float64, Int64, place_of_largest
from tpucc.plugins.failures import Failed

Ties = Literal["even", "away", "zero"]
SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest scale: a normal float32."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The bits of an integer, where ties go, and whether the zero point of a range is always 0."""

    bits: int = 8
    ties: Ties = "even"
    symmetric: bool = False

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
    return Rules(draw.choice((6, 7, 8)), draw.choice(("away", "zero")), draw.choice((False, True))) if draw else Rules()


def exact_integers(
    rules: Rules, function: Literal["quantise", "requantise"], submission: Submission, values: AnyArray, factor: AnyArray | float, zero: int
) -> Int64:
    """The integers of `quantise` or `requantise`, which must be exact."""
    expected = rules.solution.expected(function, values, factor, zero)
    found = integers(submission.call(function, values, factor, zero), values.shape, function)
    _require_between(found, expected, expected, lambda place: element_text(function, values, factor, zero, place))
    return found


def nearest_integers(
    rules: Rules, function: Literal["quantise", "requantise"], submission: Submission, values: AnyArray, factor: AnyArray | float, zero: int
) -> Int64:
    """The integers of `quantise` or `requantise`, which must be the nearest ones. Of a tie, either neighbour is."""
    found = integers(submission.call(function, values, factor, zero), values.shape, function)
    low, high = (np.clip(each + zero, rules.low, rules.high).astype(np.int64) for each in _nearest(_real(function, values, factor)))
    _require_between(found, low, high, lambda place: f"mend `{function}` first: {element_text(function, values, factor, zero, place)}")
    return found


def element_text(function: str, values: AnyArray, factor: AnyArray | float, zero: int, place: tuple[int, ...]) -> str:
    """What an element becomes an integer of, in words, and whether it is a tie."""
    by = factor if isinstance(factor, float) else np.broadcast_to(factor, values.shape)[place]
    of, factor_of = ("value", "scale") if function == "quantise" else ("accumulator", "multiplier")
    given = f"{of} {values[place]!s}, {factor_of} {by!s}, zero point {zero}{_tie(function, values[place], by)}"
    return f"{function}, element {list(place)}: {given}"


def _require_between(found: AnyArray, low: AnyArray, high: AnyArray, said: Callable[[tuple[int, ...]], str]) -> None:
    """Raises `Failed` with the first place that is below `low` or above `high`, and what is `said` of it."""
    wrong = (found < low) | (found > high)
    if wrong.any():
        place = place_of_largest(wrong)
        expected = f"{low[place]}" if low[place] == high[place] else f"{low[place]} or {high[place]}"
        raise Failed("wrong", f"{said(place)}: expected {expected}, found {found[place]}")


def _real(function: str, values: AnyArray, factor: AnyArray | float) -> AnyArray:
    """The float32 quotients of values, or products of accumulators, before they are rounded."""
    with np.errstate(all="ignore"):  # at the extremes they are infinite
        numbers, by = np.asarray(values, np.float32), np.asarray(factor, np.float32)
        return numbers / by if function == "quantise" else numbers * by


def _nearest(real: AnyArray) -> tuple[Float64, Float64]:
    """The least and the largest of the integers that are nearest to float32 numbers: those of a tie are its neighbours."""
    exact = real.astype(np.float64)
    return np.ceil(exact - 0.5), np.floor(exact + 0.5)


def _tie(function: str, value: AnyArray, by: AnyArray | float) -> str:
    """`; the quotient -15.5 is a tie`, of a value's quotient or an accumulator's product, where it is one."""
    real = _real(function, value, by)
    low, high = _nearest(real)
    name = "quotient" if function == "quantise" else "product"
    return f"; the {name} {real:g} is a tie" if low < high else ""


def exact_weights(rules: Rules, submission: Submission, weights: Float32) -> tuple[Int64, Float32]:
    """The integers and scales of `quantise_weights`, which must be exact."""
    found, scales = _weights(rules, submission, weights)
    expected, _ = rules.solution.expected("quantise_weights", weights)
    _require_between(found, expected, expected, lambda place: f"weight {weights[place]} at {list(place)}, scale {scales[place[1]]}")
    return found, scales


def nearest_weights(rules: Rules, submission: Submission, weights: Float32) -> tuple[Int64, Float32]:
    """The same with scales that must be exact, and the nearest integers. Of a tie, either neighbour is."""
    found, scales = _weights(rules, submission, weights)
    low, high = (np.clip(each, -rules.high, rules.high).astype(np.int64) for each in _nearest(_real("quantise", weights, scales)))
    said = "mend `quantise_weights` first: weight {} at {}, scale {}".format
    _require_between(found, low, high, lambda place: said(weights[place], list(place), scales[place[1]]))
    return found, scales


def _weights(rules: Rules, submission: Submission, weights: Float32) -> tuple[Int64, Float32]:
    """The integers of `quantise_weights`, and the scales, which must be exact."""
    answer = submission.call("quantise_weights", weights)
    if not isinstance(answer, list) or len(answer) != 2:
        raise Failed("result", "quantise_weights returned no pair (integers, scales)")
    _, scales = rules.solution.expected("quantise_weights", weights)
    found = _floats(answer[1], weights.shape[1:])
    said = "scale of column {}, whose largest magnitude is {}".format
    _require_between(found, scales, scales, lambda n: said(n[0], np.abs(weights[:, n[0]]).max()))
    return integers(answer[0], weights.shape, "quantise_weights"), scales


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
