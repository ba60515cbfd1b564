"""Scales of weights that give a layer's multiplier, and weights that give their scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32

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


def of_weights(scales: AnyArray) -> AnyArray:
    """Which of the scales, float32 of any shape, a column of weights whose largest integer is 127 has when it is quantised again."""
    return gives(largest_weights(scales), scales)


def real_scales(use: Use) -> Float32 | None:
    """Float32 [N] that gives a product its multipliers; None where a column has none.

    Where several do, one that the weights have when they are quantised again.
    """
    with np.errstate(all="ignore"):
        tried = _near(use)
        found = tried[NEIGHBOURS]
        for wanted in (use.gives, lambda scales: use.gives(scales) & of_weights(scales)):
            for scales in tried:
                found = np.where(wanted(scales), scales, found)
        fits = np.isfinite(found) & (found >= np.finfo(np.float32).tiny) & use.gives(found)
    return found.astype(np.float32) if fits.all() else None


def _near(use: Use) -> list[Float32]:
    """The scales [N] that a product's multipliers say, and those beside them, in order."""
    near = (use.multiplier.astype(np.float64) * float(use.y) / float(use.x)).astype(np.float32)
    return [(near.view(np.int32) + np.int32(step)).view(np.float32) for step in range(-NEIGHBOURS, NEIGHBOURS + 1)]


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
