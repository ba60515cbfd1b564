"""Rounding to bfloat16: the upper half of a float32, with a sign, 8 bits of exponent and 7 of fraction.

The rule is that of the matrix unit's operands (Google Cloud, "Improve your model's performance with bfloat16"): to the nearest value, ties
to the even one; what is too large becomes infinite; subnormal numbers become zeros of the same sign. NaN stays NaN, here always the same
quiet one, so that results have the same bits on every processor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.floating.functions import CHUNK
from tpucc.floating.nan import NAN
from tpucc.numerics import Float32

Bits = npt.NDArray[np.uint32]
"""Patterns of float32 numbers."""

SIGN, UPPER, JUST_BELOW_HALF, HALF_PLACES, ONE = (np.array(bits, np.uint32) for bits in (0x80000000, 0xFFFF0000, 0x7FFF, 16, 1))
"""Arrays without axes: NumPy takes them faster than its scalars."""
LEAST_NORMAL = 2**24
"""The pattern of the smallest normal number, 2^-126, moved one place up: so all patterns are compared here, without the sign."""
INFINITE = 255 * 2**24


def round_to_bfloat16(x: Float32) -> Float32:
    """The nearest bfloat16 values, as float32; any shape. The rule stands at the top of the module."""
    flat = np.asanyarray(x, np.float32, order="C").reshape(-1)  # a subclass of arrays, as one that counts, stays one
    rounded = np.empty_like(flat, np.uint32)
    for first in range(0, flat.size, CHUNK):
        round_chunk(flat[first : first + CHUNK], rounded[first : first + CHUNK])
    return rounded.view(np.float32).reshape(x.shape)


def round_chunk(x: Float32, rounded: Bits) -> tuple[int, int]:
    """Rounds x into the patterns `rounded`, of any shape; both are contiguous, not empty, and small enough for the cache.

    Returns the patterns, moved one place up, of the smallest number that isn't zero and of the largest; (0, 0) if all are zero. The
    larger of two numbers isn't the smaller one when they are rounded, so that the extremes of x give them.
    """
    bits = x.view(np.uint32)
    lowest, highest = extremes(bits)
    np.right_shift(bits, HALF_PLACES, rounded)
    np.bitwise_and(rounded, ONE, rounded)
    np.add(rounded, JUST_BELOW_HALF, rounded)
    np.add(rounded, bits, rounded)
    np.bitwise_and(rounded, UPPER, rounded)
    if highest > INFINITE:
        np.copyto(rounded, NAN.view(np.uint32), where=np.isnan(x))
    if 0 < lowest < LEAST_NORMAL:
        np.bitwise_and(rounded, SIGN, out=rounded, where=rounded << ONE < LEAST_NORMAL)
        return extremes(rounded)
    return _nearest(lowest), _nearest(highest)


def _nearest(magnitude: int) -> int:
    """A pattern of a magnitude, moved one place up, rounded as `round_chunk` rounds."""
    return magnitude + 0xFFFE + (magnitude >> 16 & 2) & ~0x1FFFF


def extremes(bits: Bits) -> tuple[int, int]:
    """The least pattern of a magnitude that isn't zero and the largest, moved one place up; (0, 0) if all are zero."""
    magnitudes = bits << ONE
    highest, lowest = magnitudes.item(magnitudes.argmax()), magnitudes.item(magnitudes.argmin())
    if lowest or not highest:
        return lowest, highest
    np.subtract(magnitudes, ONE, out=magnitudes)  # of zero the largest integer
    return magnitudes.item(magnitudes.argmin()) + 1, highest
