"""Functions in float64 whose bits are the same on every processor: single IEEE 754 operations in a defined order.

NumPy's and those of the C library have other last bits on other processors. exp, log, sin and cos have the polynomials of fdlibm (Sun
Microsystems, 1993: e_exp.c, e_log.c, k_sin.c, k_cos.c), and are wrong by about one ulp, the others by a few. Arguments have any shape and
any floating type; results are float64. NumPy's warnings are the caller's to switch off.
"""

from __future__ import annotations

import numpy as np

from tpucc.numerics import AnyArray, Float64

LOG2_E = 1.44269504088896338700
LN2_UPPER, LN2_LOWER = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: a multiple of the first by an exponent is exact."""
HALF_PI = 1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21
"""π / 2 in three parts: multiples of the first two by integers below 2^20 are exact."""
EXP = (
    4.13813679705723846039e-08,
    -1.65339022054652515390e-06,
    6.61375632143793436117e-05,
    -2.77777777770155933842e-03,
    1.66666666666666019037e-01,
)
"""Highest power first, as all of these."""
LOG = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
    2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01,
)  # fmt: skip
SIN = (
    1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04,
    8.33333333332248946124e-03, -1.66666666666666324348e-01,
)  # fmt: skip
COS = (
    -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05,
    -1.38888888888741095749e-03, 4.16666666666666019037e-02,
)  # fmt: skip


def exp(x: AnyArray) -> Float64:
    """e to the power of x."""
    x = np.clip(np.asarray(x, np.float64), -800.0, 800.0)  # beyond it is 0, or infinite
    n = np.rint(x * LOG2_E)
    upper, lower = x - n * LN2_UPPER, n * LN2_LOWER
    r = upper - lower
    square = r * r
    c = r - square * _horner(square, EXP)
    power = 1.0 - ((lower - r * c / (2.0 - c)) - upper)
    half = np.nan_to_num(n) // 2
    return _scaled(_scaled(power, half), np.nan_to_num(n) - half)


def _scaled(x: Float64, exponent: Float64) -> Float64:
    return np.asarray(np.ldexp(x, exponent.astype(np.int32)))


def log(x: AnyArray) -> Float64:
    """The natural logarithm. Of zero it is -inf, of a negative number NaN."""
    x = np.asarray(x, np.float64)
    fraction, n = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    small = fraction < np.sqrt(0.5)
    f = np.where(small, 2.0 * fraction, fraction) - 1.0
    n = (n - small).astype(np.float64)
    s = f / (2.0 + f)
    square = s * s
    half = 0.5 * f * f
    result = n * LN2_UPPER - ((half - (s * (half + square * _horner(square, LOG)) + n * LN2_LOWER)) - f)
    result = np.where(x > 0, np.where(np.isinf(x), np.inf, result), np.where(x == 0, -np.inf, np.nan))
    return np.asarray(result)


def expm1(x: AnyArray) -> Float64:
    """exp(x) - 1, which loses no digits near 0: (e - 1) · x / log(e) for e = exp(x) as it is rounded (Kahan)."""
    x = np.asarray(x, np.float64)
    power = exp(x)
    near = np.abs(x) < 1.0
    logarithm = np.where(near & (power != 1.0), log(np.where(near, power, 2.0)), 1.0)
    return np.asarray(np.where(near, np.where(power == 1.0, x, (power - 1.0) * x / logarithm), power - 1.0))


def tanh(x: AnyArray) -> Float64:
    """The hyperbolic tangent."""
    x = np.asarray(x, np.float64)
    power = expm1(2.0 * np.minimum(np.abs(x), 20.0))  # from there on it is 1
    return np.asarray(np.copysign(power / (power + 2.0), x))


def sigmoid(x: AnyArray) -> Float64:
    """1 / (1 + exp(-x)). Never overflows."""
    x = np.asarray(x, np.float64)
    power = exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, power) / (1.0 + power))


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
    sine = x + x * square * _horner(square, SIN)
    cosine = 1.0 - (0.5 * square - square * square * _horner(square, COS))
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


def _horner(x: Float64, coefficients: tuple[float, ...]) -> Float64:
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total
