"""Scales of weights that give a layer's multiplier back."""

from __future__ import annotations

import numpy as np

from tpucc.numerics import AnyArray, Float32

NEIGHBOURS = 2
"""A scale of weights is sought among so many float32 numbers on both sides of the quotient."""


def weight_scales(multiplier: AnyArray, x: np.float32, y: np.float32) -> Float32 | None:
    """Float32 [N] for which x · scale / y, each step rounded to float32, is the multiplier; None where one has none."""
    with np.errstate(over="ignore", under="ignore"):
        near = (multiplier.astype(np.float64) * float(y) / float(x)).astype(np.float32)
        found = near.copy()
        for step in range(-NEIGHBOURS, NEIGHBOURS + 1):
            tried = (near.view(np.int32) + np.int32(step)).view(np.float32)
            found = np.where(x * tried / y == multiplier, tried, found)
        fits = np.isfinite(found) & (found >= np.finfo(np.float32).tiny) & (x * found / y == multiplier)
    return found.astype(np.float32) if fits.all() else None
