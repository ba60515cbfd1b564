"""Functions in float64 whose bits are the same on every processor: single IEEE 754 operations in a defined order.

NumPy's and those of the C library have other last bits on other processors. exp and log have the polynomials of fdlibm (Sun Microsystems,
1993: e_exp.c, e_log.c), and are wrong by about one ulp, the others by a few. Arguments have any shape and any floating type; results are
float64. NumPy's warnings are the caller's to switch off.
"""

from __future__ import annotations

import numpy as np

from tpucc.numerics import AnyArray, Float64

LOG2_E = 1.44269504088896338700
LN2_UPPER, LN2_LOWER = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: a multiple of the first by an exponent is exact."""
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


def exp(x: AnyArray) -> Float64:
    """e to the power of x."""
    x = np.clip(np.asarray(x, np.float64), -800.0, 800.0)  # beyond it is 0, or infinite
    n = np.rint(x * LOG2_E)
    upper, lower = x - n * LN2_UPPER, n * LN2_LOWER
    r = upper - lower
    square = r * r
    c = r - square * horner(square, EXP)
    power = 1.0 - ((lower - r * c / (2.0 - c)) - upper)
    exponent = np.where(np.isnan(n), 0.0, n).astype(np.int32)
    half = exponent >> 1
    return np.asarray(np.ldexp(np.ldexp(power, half), exponent - half))


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
    result = n * LN2_UPPER - ((half - (s * (half + square * horner(square, LOG)) + n * LN2_LOWER)) - f)
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


def horner(x: Float64, coefficients: tuple[float, ...]) -> Float64:
    """A polynomial of x, its coefficients highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total
