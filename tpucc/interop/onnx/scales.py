"""Scales of weights that give a layer's multiplier, and weights that give their scale."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32
from tpucc.values import dataclass

TRIED = 2**17
"""Float32 numbers among which the scale of a result is sought."""
NEIGHBOURS = 2
"""A scale of weights is sought among so many float32 numbers on both sides of the quotient."""


def weight_scales(multiplier: AnyArray, x: np.float32, y: np.float32) -> Float32 | None:
    """Float32 [N] for which x · scale / y, each step rounded to float32, is the multiplier; None where one has none.

    Where several do, one that weights have: the 127th part of a float32 number.
    """
    with np.errstate(over="ignore", under="ignore"):
        near = (multiplier.astype(np.float64) * float(y) / float(x)).astype(np.float32)
        tried = [(near.view(np.int32) + np.int32(step)).view(np.float32) for step in range(-NEIGHBOURS, NEIGHBOURS + 1)]
        found = near.copy()
        for scale in tried:
            found = np.where(x * scale / y == multiplier, scale, found)
        for scale in tried:
            found = np.where((x * scale / y == multiplier) & gives(largest_weights(scale), scale), scale, found)
        fits = np.isfinite(found) & (found >= np.finfo(np.float32).tiny) & (x * found / y == multiplier)
    return found.astype(np.float32) if fits.all() else None


@dataclass(frozen=True, slots=True)
class Scaled:
    """Integers of the scale `source`, times weights that may have any scale, or times 1, have these multipliers to a result's scale."""

    source: float
    multipliers: AnyArray
    weighted: bool

    def fits(self, multiplier: np.float32, results: Float32) -> AnyArray:
        """Which of the scales of a result give this multiplier; weights have a scale that they give again."""
        source = np.float32(self.source)
        if not self.weighted:
            return np.asarray(source / results == multiplier)
        near = (np.float64(multiplier) * results.astype(np.float64) / float(source)).astype(np.float32)
        scales = [(near.view(np.int32) + np.int32(step)).view(np.float32) for step in range(-NEIGHBOURS, NEIGHBOURS + 1)]
        fits = [(source * scale / results == multiplier) & gives(largest_weights(scale), scale) for scale in scales]
        return np.asarray(np.any(fits, axis=0))


def result_scale(low: float, high: float, operands: Iterable[Scaled]) -> float | None:
    """The scale of a result between two bounds that gives all operands their multipliers, the one next to the middle.

    None where none of `TRIED` numbers around the middle does.
    """
    middle = np.float32((low + high) / 2)
    tried = (middle.view(np.int32) + np.arange(-TRIED // 2, TRIED // 2, dtype=np.int32)).view(np.float32)
    tried = tried[(tried > np.float64(low)) & (tried < np.float64(high))]  # as float32 the bounds may be the only number between them
    for operand in operands:
        for multiplier in np.unique(operand.multipliers):
            tried = tried[operand.fits(multiplier, tried)]
    return float(tried[np.argmin(np.abs(tried - middle))]) if len(tried) else None


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
