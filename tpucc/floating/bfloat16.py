"""Rounding to bfloat16: the upper half of a float32, with a sign, 8 bits of exponent and 7 of fraction.

The rule is that of the matrix unit's operands (Google Cloud, "Improve your model's performance with bfloat16"): to the nearest value, ties
to the even one; what is too large becomes infinite; subnormal numbers become zeros of the same sign. NaN stays NaN, here always the same
quiet one, so that results have the same bits on every processor.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpucc.numerics import Float32

Bits = npt.NDArray[np.uint32]
"""Patterns of float32 numbers."""
Exponents = npt.NDArray[np.uint8]
"""Biased exponents: 2^(e - 127) ≤ |x| < 2^(e - 126); 0 of zero, 255 of infinity and NaN."""

NAN = np.uint32(0x7FC00000).view(np.float32)
"""The NaN that all results have: quiet, positive, without a payload."""
CHUNK = 2**15
"""Elements that are rounded together: they and the scratch stay in a processor's cache."""
SIGN = np.uint32(0x80000000)
UPPER = np.uint32(0xFFFF0000)
JUST_BELOW_HALF = np.uint32(0x7FFF)
HALF_PLACES, EXPONENT_PLACES, ONE = np.uint32(16), np.uint32(23), np.uint32(1)
SMALLEST = 0x01000000
"""The pattern of the smallest normal number, 2^-126, moved one place up: without the sign."""
FINITE_SQUARE = float("inf")


def round_to_bfloat16(x: Float32) -> Float32:
    """The nearest bfloat16 values, as float32; any shape. The rule stands at the top of the module."""
    flat = np.ascontiguousarray(x, np.float32).reshape(-1)
    rounded = np.empty(flat.shape, np.uint32)
    exponents = np.empty(min(CHUNK, flat.size), np.uint8)
    for first in range(0, flat.size, CHUNK):
        part = slice(first, first + CHUNK)
        round_chunk(flat[part], rounded[part], exponents[: flat[part].size])
    return rounded.view(np.float32).reshape(x.shape)


def round_chunk(x: Float32, rounded: Bits, exponents: Exponents) -> None:
    """Rounds x [n] into the patterns `rounded` [n], and writes the exponents of the result [n]. n is small enough for the cache."""
    bits = x.view(np.uint32)
    np.right_shift(bits, HALF_PLACES, out=rounded)
    np.bitwise_and(rounded, ONE, out=rounded)
    np.add(rounded, JUST_BELOW_HALF, out=rounded)
    np.add(rounded, bits, out=rounded)
    np.bitwise_and(rounded, UPPER, out=rounded)
    if not x.dot(x) < FINITE_SQUARE:  # the sum of the squares is NaN if an element is
        np.copyto(rounded, NAN.view(np.uint32), where=np.isnan(x))
    exponents[...] = rounded >> EXPONENT_PLACES  # the sign is the ninth bit, and is dropped
    if not exponents.all() and int(((rounded << ONE) - ONE).min()) < SMALLEST - 1:  # zero minus one is the largest integer
        np.bitwise_and(rounded, SIGN, out=rounded, where=exponents == 0)
