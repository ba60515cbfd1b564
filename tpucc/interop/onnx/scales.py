"""Scales of weights that give a layer's multiplier, and weights that give their scale."""

from __future__ import annotations

import numpy as np

from tpucc.numerics import WEIGHT_MAX, AnyArray, Float32

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
