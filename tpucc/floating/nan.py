"""The one NaN that all results have, so that they have the same bits on every processor."""

from __future__ import annotations

import numpy as np

from tpucc.numerics import Float32

NAN = np.uint32(0x7FC00000).view(np.float32)
"""The NaN that all results have: quiet, positive, without a payload."""
OVERFLOWN = float("inf")


def with_one_nan(x: Float32) -> Float32:
    """The array x itself, of any shape, in which each NaN has become `NAN`."""
    if not np.vdot(x, x) <= OVERFLOWN:  # the sum of the squares, in one call: NaN if an element is; unlike `dot`, without a warning
        np.copyto(x, NAN, where=np.isnan(x))
    return x
