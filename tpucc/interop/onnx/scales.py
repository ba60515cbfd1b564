"""Scales of weights that give a layer's multiplier, and weights that give their scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.dtypes import IntegerFormat
from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32, Float64

NEIGHBOURS = 2
"""A scale of weights is sought among so many float32 numbers on both sides of the quotient."""


@dataclass(frozen=True, slots=True)
class Use:
    """A product with weights: the `multiplier` [N] of its columns, from the scale `x` of the values to the scale `y` of the result."""

    multiplier: AnyArray
    x: np.float32
    y: np.float32

    def gives(self, scales: Float32) -> AnyArray:
        """Whether x · scale / y, each step rounded to float32, is the multiplier; for each column."""
        if scales.shape != self.multiplier.shape:
            return np.zeros(1, np.bool_)
        found: AnyArray = self.x * scales / self.y == self.multiplier
        return found


Again = Callable[[AnyArray], AnyArray]
"""Which of the scales, float32 of any shape, constants have again when they are quantised anew."""


def of_weights(scales: AnyArray) -> AnyArray:
    """`Again` for a column of weights, of which the largest integer is 127."""
    return gives(largest_weights(scales), scales)


def of_constant(integers: AnyArray, zero: int, of: IntegerFormat) -> Again:
    """`Again` for a constant of integers with a zero point, whose scale is found as that of a value's range."""
    ends = (np.float32(min(int(integers.min()) - zero, 0)), np.float32(max(int(integers.max()) - zero, 0)))

    def again(scales: AnyArray) -> AnyArray:
        low, high = ((end * scales).astype(np.float64) for end in ends)  # real values are float32
        found = np.maximum(-low, high) / of.high if of.symmetric else (high - low) / (of.high - of.low)
        return np.asarray(found.astype(np.float32) == scales)

    return again


def weight_scales(uses: Sequence[Use], again: Again = of_weights) -> Float32 | None:
    """Float32 [N] that gives all these products with the same weights their multipliers; None where a column has none.

    Where several do, one that the weights have again.
    """
    with np.errstate(all="ignore"):
        tried = _near(uses[0])
        fitting = [np.all([use.gives(scale) for use in uses], axis=0) for scale in tried]
        found = tried[NEIGHBOURS].copy()
        for scale, fits in zip(tried, fitting, strict=True):
            found = np.where(fits, scale, found)
        for scale, fits in zip(tried, fitting, strict=True):
            found = np.where(fits & again(scale), scale, found)
        fits = np.isfinite(found) & (found >= np.finfo(np.float32).tiny) & np.all([use.gives(found) for use in uses], axis=0)
    return found.astype(np.float32) if fits.all() else None


def _near(use: Use) -> list[Float32]:
    """The scales [N] that a product's multipliers say, and those beside them, in order."""
    near = (use.multiplier.astype(np.float64) * float(use.y) / float(use.x)).astype(np.float32)
    return [(near.view(np.int32) + np.int32(step)).view(np.float32) for step in range(-NEIGHBOURS, NEIGHBOURS + 1)]


def scales_with_one_bias(use: Use, integers: AnyArray, x: float, wanted: np.float32 | None) -> Float32 | None:
    """Float32 [N] that weights have again and that give a product its multipliers, with which these integers [N] are those of one bias in
    units of x times the scales: of the one that is `wanted`, if they can be, else of any. None where they are of several."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        tried = np.stack(_near(use))
        fits = np.stack([use.gives(scales) & of_weights(scales) for scales in tried])
    if fits.shape != tried.shape or integers.shape != use.multiplier.shape or not fits.any(axis=0).all():
        return None
    units = x * tried.astype(np.float64)
    low, high = (np.where(fits, (integers + half) * units, np.nan) for half in (-0.5, 0.5))
    within = low[(low >= np.nanmin(low, axis=0).max()) & (low <= np.nanmax(high, axis=0).min())]
    rounded = within.astype(np.float32)
    least = np.where(
        rounded < within, np.nextafter(rounded, np.float32(np.inf)), rounded
    )  # of the values that all columns have, one is such
    for value in (*([] if wanted is None else [wanted]), *np.unique(least)):
        found = fits & (bias_integers(np.full(integers.shape, value, np.float32), x, tried) == integers)
        if found.any(axis=0).all():
            chosen: Float32 = tried[found.argmax(axis=0), np.arange(len(integers))]
            return chosen
    return None


def bias_integers(bias: Float32, x: float, scales: Float32) -> Float64:
    """The bias [N] in units of x times the scales [N] of the weights' columns, rounded: integers, as float64."""
    rounded: Float64 = np.rint(bias.astype(np.float64) / (x * scales.astype(np.float64)))
    return rounded


def common_bias(uses: Sequence[tuple[AnyArray, float]], scales: Float32) -> Float32:
    """The midpoint of the biases that quantise to all the given integers: float32 [N].

    Each use has integers [N] and the scale of its x; the unit of a bias is this scale times the `scales` [N] of the weights' columns.
    If no bias quantises to all of them, the result is some number: check it with `bias_integers`.
    """
    units = [x * scales.astype(np.float64) for _, x in uses]
    low = np.max([(integers - 0.5) * unit for (integers, _), unit in zip(uses, units, strict=True)], axis=0)
    high = np.min([(integers + 0.5) * unit for (integers, _), unit in zip(uses, units, strict=True)], axis=0)
    found: Float32 = ((low + high) / 2).astype(np.float32)
    return found


def largest_weights(scale: AnyArray) -> Float32:
    """The float32 values whose 127th part is rounded to these scales, as far as there are such."""
    middle = (scale.astype(np.float64) * WEIGHT_MAX).astype(np.float32)
    found = middle.copy()
    for other in (np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))):
        wrong = ~gives(found, scale)
        found[wrong] = other[wrong]
    return found


def gives(largest: Float32, scale: AnyArray) -> AnyArray:
    """Whether weights with these largest values have these scales."""
    found: AnyArray = (largest.astype(np.float64) / WEIGHT_MAX).astype(np.float32) == scale
    return found
