"""exp, log, tanh, erf and sigmoid of the vector unit: float32 + - × ÷ and exponent bits in a defined order, wrong by at most 2 ulp,
sigmoid by at most 3.

NumPy's own functions have other bits on processors with other instructions. These are polynomials without fused multiply-add, so their
bits are the same everywhere. exp, log and tanh have the polynomials of the Cephes mathematical library in single precision (Moshier,
"Methods and Programs for Mathematical Functions", 1989: expf, logf, tanhf). Those of erf were fitted for tpucc, so that the greatest error
of erf is least.

NaN gives `NAN`, the one quiet NaN of `tpucc.floating.nan`; so does the logarithm of a negative number. Infinities give the limits.
Subnormal numbers are numbers like others, in and out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tpucc.floating.nan import NAN, with_one_nan
from tpucc.numerics import Float32

CHUNK = 2**15
"""Elements that are computed together: they and the scratch stay in a processor's cache."""
Int32 = npt.NDArray[np.int32]


def single(value: float) -> Float32:
    """A float32 as an array without axes: NumPy takes it faster than its scalars."""
    return np.array(value, np.float32)


LOG2_E = single(1.44269504088896341)
LN2_UPPER, LN2_LOWER = single(0.693359375), single(-2.12194440e-4)
"""ln 2 in two parts: a multiple of the first by an exponent is exact."""
TO_INTEGER = single(1.5 * 2**23)
"""Added to a number below 2^22, it leaves the nearest integer in the last bits; subtracted again, that integer."""
TO_INTEGER_BITS = TO_INTEGER.view(np.int32)
LOWEST_EXPONENT, HIGHEST_EXPONENT = single(-104.0), single(89.0)
"""exp of less is 0, and of more infinite."""
SMALL_EXPONENT = 87.0
"""Up to here, exp and its reciprocal are normal numbers."""
SQRT_HALF_BITS = single(0.70710678).view(np.int32)
TINY, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
FRACTION_PLACES, BIAS, ONE_PLACE = (np.array(value, np.int32) for value in (23, 127, 1))
TO_INTEGER_LESS_BIAS = TO_INTEGER_BITS - BIAS
ZERO, HALF, ONE, TWO = single(0.0), single(0.5), single(1.0), single(2.0)
UP_FROM_SUBNORMAL, UNMOVED = (np.array(value, np.int32) for value in (25, 0))
"""Powers of two that make every subnormal number normal, and none."""
FLAT_TANH, NEAR_TANH = single(10.0), single(0.625)
FLAT_ERF, NEAR_ERF = single(4.0), single(1.0)
"""tanh and erf are 1 in float32 from the first on; below the second they have a polynomial of their own."""

Coefficients = tuple[Float32, ...]


def _coefficients(*values: float) -> Coefficients:
    return tuple(map(single, values))


EXP = _coefficients(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""(exp(r) - 1 - r) / r², highest power first, as all of these."""
LOG = _coefficients(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""(log(1 + f) - f + f²/2) / f³."""
TANH = _coefficients(-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
"""(tanh(x) - x) / x³, in powers of x²."""
ERF = _coefficients(
    7.889119297033176e-05, -0.0008020841050893068, 0.005189535208046436, -0.026854444295167923,
    0.11283600330352783, -0.3761262595653534, 0.12837916612625122,
)  # fmt: skip
"""erf(x) / x - 1, in powers of x²; wrong by at most 2^-29.6."""
ERFC = _coefficients(
    -0.0001855748996604234, 0.001826166408136487, -0.009890896268188953, 0.04150069132447243,
    0.8431183099746704, 2.6389667987823486, 1.8496055603027344,
)  # fmt: skip
"""-log(1 - erf(x)), in powers of x - 1; 1 - exp(-this) is wrong by at most 2^-29.8."""


def exp(x: Float32) -> Float32:
    """e to the power of x; any shape, float32."""
    return _in_chunks(_exp, x)


def log(x: Float32) -> Float32:
    """The natural logarithm of x; any shape, float32. Of a zero -inf, of a negative number NaN."""
    return _in_chunks(_log, x)


def tanh(x: Float32) -> Float32:
    """The hyperbolic tangent of x; any shape, float32: near zero a polynomial, then 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    return _in_chunks(_tanh, x)


def erf(x: Float32) -> Float32:
    """2 / sqrt(pi) times the integral of exp(-t²) from 0 to x; any shape, float32."""
    return _in_chunks(_erf, x)


def sigmoid(x: Float32) -> Float32:
    """1 / (1 + exp(-x)); any shape, float32. With e = exp(-|x|), it is 1 / (1 + e) from zero on, and e / (1 + e) below."""
    return _in_chunks(_sigmoid, x)


def _in_chunks(function: Callable[[Float32], Float32], x: Float32) -> Float32:
    """The function of all elements, a chunk at a time. Its NaN are `NAN`."""
    if x.size == 1:  # twice: in place, NumPy takes longer for one element than for two
        return _in_chunks(function, x.repeat(2))[:1].reshape(x.shape)
    x = np.asanyarray(x, np.float32, order="C")  # a subclass of arrays, as one that counts operations, stays one
    if 0 < x.size <= CHUNK:
        return function(x)
    flat = x.reshape(-1)
    results = np.empty_like(flat)
    for first in range(0, flat.size, CHUNK):
        part = slice(first, first + CHUNK)
        results[part] = function(flat[part])
    return results.reshape(x.shape)


def _horner(x: Float32, coefficients: Coefficients) -> Float32:
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total


def _exp(x: Float32) -> Float32:
    """With n = round(x / ln 2) and r = x - n ln 2: (1 + (r + r² P(r))) · 2^n, the power in two factors, either of them normal.

    Where all exponents are small, and so none is NaN, one factor is enough.
    """
    if x.item(x.argmin()) >= -SMALL_EXPONENT and x.item(x.argmax()) <= SMALL_EXPONENT:
        return _exp_of_small(x.copy())
    x = np.maximum(x, LOWEST_EXPONENT)
    np.minimum(x, HIGHEST_EXPONENT, out=x)
    n = x * LOG2_E
    n += TO_INTEGER
    exponent = n.view(np.int32) - TO_INTEGER_BITS
    power = _exp_of_rest(x, n)
    first = exponent >> ONE_PLACE
    power *= _power_of_two(first)
    exponent -= first
    power *= _power_of_two(exponent)
    return with_one_nan(power)


def _exp_of_small(x: Float32) -> Float32:
    """The same bits, of x from `-SMALL_EXPONENT` to `SMALL_EXPONENT`, which becomes scratch: there 2^n is normal, and so is the result."""
    n = x * LOG2_E
    n += TO_INTEGER
    bits = n.view(np.int32) - TO_INTEGER_LESS_BIAS
    bits <<= FRACTION_PLACES
    power = _exp_of_rest(x, n)
    power *= bits.view(np.float32)
    return power


def _exp_of_rest(x: Float32, n: Float32) -> Float32:
    """1 + (r + r² P(r)); `TO_INTEGER` has been added to n. Both become scratch."""
    n -= TO_INTEGER
    x -= n * LN2_UPPER
    n *= LN2_LOWER
    x -= n
    power = _horner(x, EXP)
    power *= x
    power *= x
    power += x
    power += ONE
    return power


def _power_of_two(exponent: Int32) -> Float32:
    bits = exponent + BIAS
    bits <<= FRACTION_PLACES
    return bits.view(np.float32)


def _log(x: Float32) -> Float32:
    """With x = (1 + f) 2^n and 1 + f in [sqrt(1/2), sqrt(2)): f + (f³ P(f) + n · lower - f²/2) + n · upper."""
    if x.item(x.argmin()) >= TINY and x.item(x.argmax()) <= LARGEST:
        return _log_of_normal(x, UNMOVED)
    small = np.abs(x) < TINY
    scaled = np.where(small, x * np.float32(2.0 ** int(UP_FROM_SUBNORMAL)), x)
    result = _log_of_normal(scaled, np.where(small, UP_FROM_SUBNORMAL, UNMOVED))
    np.copyto(result, np.float32(-np.inf), where=x == 0)
    np.copyto(result, np.float32(np.inf), where=x == np.inf)
    np.copyto(result, NAN, where=~(x >= 0))
    return result


def _log_of_normal(x: Float32, less: Int32) -> Float32:
    """log(x / 2^less) of positive normal x."""
    bits = x.view(np.int32)
    exponent = bits - SQRT_HALF_BITS
    exponent >>= FRACTION_PLACES
    f = (bits - (exponent << FRACTION_PLACES)).view(np.float32)
    f -= ONE
    exponent -= less
    n = exponent.astype(np.float32)
    square = f * f
    result = _horner(f, LOG)
    result *= f
    result *= square
    result += n * LN2_LOWER
    square *= HALF
    result -= square
    result += f
    n *= LN2_UPPER
    result += n
    return result


def _tanh(x: Float32) -> Float32:
    magnitude = np.abs(x)
    result = np.minimum(magnitude, FLAT_TANH)
    result += result
    result = _exp_of_small(result)
    result += ONE
    np.divide(TWO, result, out=result)
    np.subtract(ONE, result, out=result)
    near = magnitude < NEAR_TANH
    if near.any():
        square = x * x
        small = _horner(square, TANH)
        small *= square
        small *= magnitude
        small += magnitude
        result = np.where(near, small, result)
    np.copysign(result, x, out=result)
    return with_one_nan(result)


def _erf(x: Float32) -> Float32:
    magnitude = np.abs(x)
    result = np.minimum(magnitude, FLAT_ERF)
    result -= NEAR_ERF
    result = _exp_of_small(-_horner(result, ERFC))
    np.subtract(ONE, result, out=result)
    near = magnitude < NEAR_ERF
    if near.any():
        small = _horner(x * x, ERF)
        small *= magnitude
        small += magnitude
        result = np.where(near, small, result)
    np.copysign(result, x, out=result)
    return with_one_nan(result)


def _sigmoid(x: Float32) -> Float32:
    power = np.abs(x)
    np.negative(power, out=power)
    small = power.item(power.argmin()) >= -SMALL_EXPONENT  # not of NaN
    power = _exp_of_small(power) if small else _exp(power)
    result = np.maximum(power, (x >= ZERO).astype(np.float32))  # the power is at most 1
    power += ONE
    result /= power
    return result if small else with_one_nan(result)
