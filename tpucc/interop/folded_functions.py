"""Functions in float64 that only constants of ONNX files have, beside those of `tpucc.floating.double`: with the same bits everywhere, too.

sin and cos have the polynomials of fdlibm (Sun Microsystems, 1993: k_sin.c, k_cos.c). Arguments have any shape and any floating type;
results are float64. NumPy's warnings are the caller's to switch off.
"""

from __future__ import annotations

import numpy as np

from tpucc.floating.double import exp, horner, log
from tpucc.numerics import AnyArray, Float64

HALF_PI = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
"""π / 2 in three parts: multiples of the first two by integers below 2^20 are exact."""
SIN = (
    1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04,
    8.33333333332248946124e-03, -1.66666666666666324348e-01,
)  # fmt: skip
COS = (
    -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05,
    -1.38888888888741095749e-03, 4.16666666666666019037e-02,
)  # fmt: skip


def sin(x: AnyArray) -> Float64:
    """The sine of an angle in radians: of one beyond 10^6, the larger the less exact."""
    return _turned(x, 0)


def cos(x: AnyArray) -> Float64:
    """The cosine, likewise."""
    return _turned(x, 1)


def _turned(x: AnyArray, quarters: int) -> Float64:
    """The sine of x and so many quarters of a turn."""
    x = np.asarray(x, np.float64)
    n = np.rint(x * (2.0 / np.pi))
    for part in HALF_PI:
        x = x - n * part
    square = x * x
    sine = x + x * square * horner(square, SIN)
    cosine = 1.0 - (0.5 * square - square * square * horner(square, COS))
    quarter = np.nan_to_num(n + quarters) % 4
    return np.asarray(np.where(quarter % 2 == 0, sine, cosine) * np.where(quarter >= 2, -1.0, 1.0))


def power(x: AnyArray, y: AnyArray) -> Float64:
    """x to the power of y: products for whole y up to 2^10, with a square root for halves, else exp(y · log(x))."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    whole = np.floor(np.abs(y))
    simple = (whole <= 2**10) & (2.0 * y == np.rint(2.0 * y))
    result = np.where(simple & (np.abs(y) > whole), np.sqrt(x), 1.0)
    base, left = x, np.where(simple, whole, 0.0).astype(np.int64)
    while left.any():
        result = np.where(left % 2 == 1, result * base, result)
        base, left = base * base, left // 2
    result = np.where(y < 0, 1.0 / result, result)
    return np.asarray(np.where(simple, result, exp(y * log(x))))
