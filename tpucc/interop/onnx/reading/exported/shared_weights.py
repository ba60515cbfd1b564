"""The values of a weight that several layers read: real numbers of which each has its own integers again.

A layer rounds a weight by its own scales: a product by one for each column, a sum or a product of elements by one for all, a bias by those
of what it is added to. Each form leaves an interval for each value. The source's weight lies in all of them, so that where one lies, the
import has one weight, too. Its largest values are more than that: they give the scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from tpucc.interop.onnx.scales import Use, bias_integers
from tpucc.ir.dtypes import IntegerFormat
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import quantisation_of
from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32, Float64, quantise, quantise_weights, weight_scales

STEPS = 8
"""The largest value of a column is sought among so many float32 numbers on both sides of the scale's multiple."""
MARGIN = 2.0**-23
"""Of an integer, the part that a float32 quotient may be wrong by."""
NEAR = 3
"""The ends of a range are sought among so many on both sides."""


Arrange = Callable[[AnyArray], AnyArray]


@dataclass(frozen=True)
class Span:
    """Which values have the lowest and the highest integer, as masks, and the least and the largest difference between the two; where no
    integer is below or above the zero point, 0 is that end of the range."""

    bottom: AnyArray
    top: AnyArray
    least: float
    most: float


@dataclass(frozen=True)
class Bounds:
    """Between which float64 values the values of a weight lie."""

    low: Float64
    high: Float64

    @classmethod
    def rounded_to(cls, integers: AnyArray, unit: AnyArray | float, margin: float) -> Bounds:
        """Those of values that become these integers, in a unit; less a margin, of each integer a part."""
        half = 0.5 - margin * (np.abs(integers) + 1)
        return cls((integers - half) * unit, (integers + half) * unit)

    @classmethod
    def of_all(cls, found: Sequence[Bounds]) -> Bounds:
        return cls(np.max([each.low for each in found], axis=0), np.min([each.high for each in found], axis=0))

    def within(self, most: AnyArray | float) -> Bounds:
        """Those of values that are no larger."""
        return Bounds(np.maximum(self.low, -most), np.minimum(self.high, most))

    def with_ends(self, only: AnyArray, least: AnyArray | float, integers: AnyArray) -> Bounds:
        """Those of values of which some are at least so large."""
        positive, negative = only & (integers > 0), only & (integers < 0)
        return Bounds(np.where(positive, least, self.low), np.where(negative, -least, self.high))


@dataclass(frozen=True)
class Claim:
    """What integers say of a weight's values: their bounds, the narrower ones `sure` without the margin within which a float32 quotient may
    be rounded elsewhere, and `has`, whether float32 values become these integers.

    The largest values of columns, `is_end`, are as large as their bounds allow. `span` is that of values that are quantised by their range.
    """

    bounds: Bounds
    sure: Bounds
    has: Callable[[Float32], bool]
    is_end: AnyArray
    span: Span | None = None

    def arranged(self, forth: Arrange, back: Arrange) -> Claim:
        """The claim on a weight with its axes in another order, or with other axes of size 1; `back` makes these values of those."""
        span = self.span and replace(self.span, bottom=forth(self.span.bottom), top=forth(self.span.top))
        bounds, sure = (Bounds(forth(each.low), forth(each.high)) for each in (self.bounds, self.sure))
        return Claim(bounds, sure, lambda values: self.has(back(values)), forth(self.is_end), span)


def of_values(values: Float32) -> Claim:
    """A weight that is there in float32."""
    exact = Bounds(values.astype(np.float64), values.astype(np.float64))
    return Claim(exact, exact, lambda found: np.array_equal(found, values), np.zeros(values.shape, np.bool_))


def of_columns(integers: AnyArray, uses: Sequence[Use]) -> Claim | None:
    """Weights of products, int8 [..., N], with one scale a column; None where a column's largest integer doesn't give its scale."""
    rows = integers.reshape(-1, integers.shape[-1]).astype(np.float64)
    ends, zero = np.abs(rows) == WEIGHT_MAX, ~rows.any(axis=0)
    largest = _largest(uses, WEIGHT_MAX)
    if largest is None or not (ends.any(axis=0) | zero).all():
        return None
    least, most = largest
    unit = np.where(zero, 0, (least + most) / 2 / WEIGHT_MAX)
    only = ends & (ends.sum(axis=0) == 1)  # which gives the scale
    found = [Bounds.rounded_to(rows, unit, margin).within(most).with_ends(only, least, rows) for margin in (0.0, MARGIN)]
    bounds, sure = (Bounds(each.low.reshape(integers.shape), each.high.reshape(integers.shape)) for each in found)

    def has(values: Float32) -> bool:
        matrix = values.reshape(rows.shape)
        scales = weight_scales(matrix, per_channel=True)
        same = np.array_equal(quantise_weights(matrix, scales), rows)
        return same and all(bool((use.gives(scales) | zero).all()) for use in uses)

    return Claim(bounds, sure, has, ends.reshape(integers.shape))


def of_elements(integers: AnyArray, zero: int, uses: Sequence[Use], of: IntegerFormat) -> Claim | None:
    """A constant beside which a value has one scale, by the range of all; None where no range gives it."""
    centred = integers.astype(np.float64) - zero
    most_integers = of.high if of.symmetric else of.high - of.low
    largest = _largest(uses, most_integers)
    if largest is None:
        return None
    least, most = (float(end[0]) for end in largest)
    unit = (least + most) / 2 / most_integers
    bounds, sure = (Bounds.rounded_to(centred, unit, margin) for margin in (0.0, MARGIN))

    def has(values: Float32) -> bool:
        held = quantisation_of(values, of)
        scales = np.asarray([held.scale], np.float32)
        same = np.array_equal(quantise(values, held.scale, held.zero_point, of), integers)
        return same and held.zero_point == zero and all(bool(use.gives(scales).all()) for use in uses)

    if of.symmetric:
        ends = np.abs(centred) == most_integers
        only = ends & (ends.sum() == 1)
        bounds, sure = (each.within(most).with_ends(only, least, centred) for each in (bounds, sure))
        return Claim(bounds, sure, has, ends)
    bottom, top = (centred == centred.min()) & (centred < 0), (centred == centred.max()) & (centred > 0)
    return Claim(bounds, sure, has, np.zeros(centred.shape, np.bool_), Span(bottom, top, least, most))


def of_held(integers: AnyArray, held: Quantisation, of: IntegerFormat) -> Claim:
    """A constant with a given scale and zero point."""
    bounds, sure = (Bounds.rounded_to(integers.astype(np.float64) - held.zero_point, held.scale, margin) for margin in (0.0, MARGIN))
    has = partial(_is_held, integers=integers, held=held, of=of)
    return Claim(bounds, sure, has, np.zeros(integers.shape, np.bool_))


def _is_held(values: Float32, integers: AnyArray, held: Quantisation, of: IntegerFormat) -> bool:
    return np.array_equal(quantise(values, held.scale, held.zero_point, of), integers)


def of_bias(integers: AnyArray, x: float, scales: Float32) -> Claim:
    """A bias [N] in units of x times the scales [N] of the weights' columns."""
    bounds = Bounds.rounded_to(integers, x * scales.astype(np.float64), 0.0)  # the quotient is float64
    return Claim(
        bounds, bounds, lambda found: np.array_equal(bias_integers(found, x, scales), integers), np.zeros(integers.shape, np.bool_)
    )


def of_one_bias(integers: AnyArray, x: float, scales: Float32, is_subtracted: bool) -> Claim:
    """A weight [1] that is the bias of all columns, or of which the bias is the opposite."""
    each = of_bias(integers, x, scales)
    low, high = np.max(each.bounds.low, keepdims=True), np.min(each.bounds.high, keepdims=True)
    bounds = Bounds(-high, -low) if is_subtracted else Bounds(low, high)

    def has(found: Float32) -> bool:
        return each.has(np.broadcast_to(-found if is_subtracted else found, integers.shape))

    return Claim(bounds, bounds, has, np.zeros(1, np.bool_))


def _largest(uses: Sequence[Use], largest: int) -> tuple[Float64, Float64] | None:
    """The least and the largest values [N] that give all products their multipliers, as multiples of their scales; None where none do."""
    first = uses[0]
    with np.errstate(all="ignore"):
        middle = (first.multiplier.astype(np.float64) * float(first.y) / float(first.x) * largest).astype(np.float32)
        if not (np.isfinite(middle) & (middle > 0)).all():
            return None
        tried = np.stack([(middle.view(np.int32) + np.int32(step)).view(np.float32) for step in range(-STEPS, STEPS + 1)])
        scales = (tried.astype(np.float64) / largest).astype(np.float32)
        fits = np.stack([np.all([use.gives(each) for use in uses], axis=0) for each in scales])
    if fits.shape != tried.shape or not fits.any(axis=0).all():
        return None
    exact = tried.astype(np.float64)
    return np.where(fits, exact, np.inf).min(axis=0), np.where(fits, exact, -np.inf).max(axis=0)


def common_values(claims: Sequence[Claim]) -> Float32 | None:
    """Float32 values that all claims have; None where there are none."""
    all_, sure = (Bounds.of_all([getattr(claim, name) for claim in claims]) for name in ("bounds", "sure"))
    if (all_.low > all_.high).any():
        return None
    low, high = (np.where(sure.low <= sure.high, one, other) for one, other in ((sure.low, all_.low), (sure.high, all_.high)))
    ends = np.any([claim.is_end for claim in claims], axis=0)
    outer = np.where(np.abs(high) > np.abs(low), high, low)
    middle = ((low + high) / 2).astype(np.float32)
    begun = [np.where(ends, outer, middle).astype(np.float32), middle]
    spans = [claim.span for claim in claims if claim.span is not None]
    tried = (found for values in begun for found in (_spanned(values, low, high, spans) if spans else [values]))
    return next((found for found in tried if all(claim.has(found) for claim in claims)), None)


def _spanned(values: Float32, low: Float64, high: Float64, spans: Sequence[Span]) -> Iterator[Float32]:
    """The values with other ends, between which the difference is that of the scale: the forms by range have one scale, and so the same
    values at their ends."""
    bottom, top = spans[0].bottom, spans[0].top
    wanted = (max(span.least for span in spans) + min(span.most for span in spans)) / 2
    first = float(np.clip(values[bottom].min(), low[bottom].min(), high[bottom].min())) if bottom.any() else 0.0
    last = float(np.clip(first + wanted, low[top].max(), high[top].max())) if top.any() else 0.0
    first = float(np.clip(last - wanted, low[bottom].min(), high[bottom].min())) if bottom.any() else 0.0
    for one, other in product(_near(first), _near(last)):
        found = values.copy()
        found[bottom], found[top] = np.maximum(low[bottom], one), np.minimum(high[top], other)
        yield found


def _near(value: float) -> list[np.float32]:
    """The float32 numbers around a value; 0 alone."""
    middle = np.float32(value)
    steps = range(-NEAR, NEAR + 1) if middle else (0,)
    return sorted(((middle.view(np.int32) + np.int32(step)).view(np.float32) for step in steps), key=lambda near: abs(near - middle))
