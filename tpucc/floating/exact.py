"""Sums of products that are exact and rounded once to float32, with the same bits on every processor.

The sums are computed in float64, whose result depends on the order of the additions only where it rounds. So each comes with a proof that
it didn't round, or that rounding changed nothing, in three steps, of which each looks only at what the one before left open:

1. *A bound of the error.* Any order of K - 1 additions is wrong by at most (K - 1) · 2^-53 · sum |products|, to first order (Higham,
   "Accuracy and Stability of Numerical Algorithms", section 4.2). If the sum less the bound and the sum plus the bound round to the same
   float32, the sum does. The bound here is twice as large, which covers its own rounding and that of sum ± bound.
2. *Two numbers.* The products are added in a tree, and the error of each addition is kept (two-sum: Knuth, "The Art of Computer
   Programming", volume 2, section 4.2.2). The bound is then that of the sum of the errors.
3. `math.fsum`, which is exact whatever the exponents are. A few sums come to it at once: arrays of so few rows are slower.

Steps 2 and 3 round to odd in float64 before they round to float32: rounding twice is then the same as rounding once (Boldo and Melquiond,
"Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tpucc.floating.nan import NAN
from tpucc.floating.reduction import halved
from tpucc.numerics import AnyArray, Float32, Float64

Indices = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

ZERO = np.array(0, np.float32)
AT_ONCE = 4
"""Sums of which step 2 would take longer than step 3."""
TOGETHER = 2**19
"""Products of open sums that are gathered at a time."""
DEEP = 2**10
"""The depth of a piece of a deep product. What adding the pieces rounds off is kept: so the bound is one for a piece, not for the depth."""
PART, LEAST_ROWS = 2**15, 64
"""Elements of a part of an operand or of a product, and the rows that it has at least: it stays in a cache."""


def differ(sums: Float64, bound: Float64) -> Booleans:
    """Which sums round to another float32 if they are wrong by as much as the bound."""
    different: Booleans = (sums - bound).astype(np.float32) != (sums + bound).astype(np.float32)
    return different


def float32_product(a: Float32, b: Float32) -> Float32:
    """Float32 operands, which aren't rounded: a [..., M, K] times b [..., K, N], each sum exact and rounded once; float32 [..., M, N].

    A product of two float32 numbers is exact in float64, so that the proof holds. Infinities and NaN are as IEEE 754 has
    them, NaN always `NAN`. Raises ValueError if the sizes don't fit.
    """
    right = b.astype(np.float64)
    reach = np.sqrt(np.einsum("...kn,...kn->...n", right, right))[..., np.newaxis, :] * (min(right.shape[-2], DEEP) * 2.0**-52)
    rows = max(LEAST_ROWS, PART // max(1, *b.shape))
    if a.ndim > 2 or b.ndim > 2 or len(a) <= rows:
        once, different = _rounded_once(a, right, reach)
    else:
        once, different = np.empty((len(a), b.shape[1]), np.float32), np.empty((len(a), b.shape[1]), np.bool_)
        for first in range(0, len(a), rows):
            part = slice(first, first + rows)
            once[part], different[part] = _rounded_once(a[part], right, reach)
    if different.any():
        _sum_again(once, np.flatnonzero(different), a, right)
    once += ZERO
    return once


def matmul(a: AnyArray, b: AnyArray) -> AnyArray:
    """NumPy's, of integers or floats, with the same bits on every processor."""
    if a.dtype.kind != "f" or b.dtype.kind != "f" or not (a.ndim and b.ndim):
        return np.asarray(np.matmul(a, b))
    left, right = a[np.newaxis] if a.ndim == 1 else a, b[:, np.newaxis] if b.ndim == 1 else b
    if a.dtype == b.dtype == np.float32:
        product: AnyArray = float32_product(left, right)
    elif left.shape[-1] != right.shape[-2]:
        raise ValueError(f"product of {list(a.shape)} and {list(b.shape)}: the inner dimensions differ")
    else:
        shape = *np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]
        product = np.zeros(shape, np.result_type(a, b))
        for place in range(left.shape[-1]):  # one product after the other, in the order of the depth
            product = product + left[..., place : place + 1] * right[..., place : place + 1, :]
    product = product[..., 0, :] if a.ndim == 1 else product
    return np.asarray(product[..., 0] if b.ndim == 1 else product)


def _rounded_once(a: Float32, right: Float64, reach: Float64) -> tuple[Float32, Booleans]:
    """a [..., M, K] times `right` [..., K, N], and the elements that step 1 leaves open.

    Its bound is `reach` [..., 1, N] times the length of a row.
    """
    left = a.astype(np.float64)
    sums = _product(left, right)
    bound = np.sqrt(np.einsum("...mk,...mk->...m", left, left))[..., np.newaxis] * reach
    once = (sums - bound).astype(np.float32)
    sums += bound
    return once, once != sums.astype(np.float32)


def _product(left: Float64, right: Float64) -> Float64:
    """`left` [..., M, K] times `right` [..., K, N], piece by piece of the depth. Their sum rounds once more, for which step 1's
    bound of a piece has room: it is twice as large as a piece needs."""
    sums: Float64 = np.matmul(left[..., :DEEP], right[..., :DEEP, :])
    errors = np.zeros(())
    for start in range(DEEP, max(left.shape[-1], right.shape[-2]), DEEP):
        piece = slice(start, start + DEEP)
        sums, error = _two_sum(sums, np.matmul(left[..., piece], right[..., piece, :]))
        errors = errors + error
    return sums + errors if errors.ndim else sums


def _sum_again(once: Float32, places: Indices, a: Float32, right: Float64) -> None:
    """Puts the exact sums of a [..., M, K] times `right` [..., K, N] into `places` of `once` [..., M, N].

    Step 1 comes once more, for sums in halving trees: a tree adds each of K numbers at most log₂ K times, rounded up, which
    bounds its error.
    """
    lefts = np.broadcast_to(a[..., :, np.newaxis, :], (*once.shape, a.shape[-1]))
    rights = np.broadcast_to(np.swapaxes(right, -1, -2)[..., np.newaxis, :, :], lefts.shape)
    at_once = max(TOGETHER // max(1, a.shape[-1]), 1)
    for start in range(0, places.size, at_once):
        some = np.unravel_index(places[start : start + at_once], once.shape)
        products = lefts[some] * rights[some]
        sums: Float64 = halved(products[..., np.newaxis])[:, 0]
        results = sums.astype(np.float32)
        still = differ(sums, np.add.reduce(np.abs(products), 1) * (products.shape[1].bit_length() * 2.0**-52)) & np.isfinite(sums)
        if still.any():
            results[still] = exact_sums(products[still])
        results[np.isnan(sums)] = NAN
        once[some] = results


def exact_sums(products: Float64) -> Float32:
    """Steps 2 and 3: the exact sum of each row of products [n, K], rounded once to float32 [n].

    The products are exact and finite, and none is subnormal in float64.
    """
    if len(products) <= AT_ONCE:
        return np.array([_sum_of_any(row) for row in products])
    heads, tails, size = products, np.zeros(len(products)), np.zeros(len(products))
    while heads.shape[1] > 1:
        half = heads.shape[1] // 2
        heads_now, errors = _two_sum(heads[:, :half], heads[:, half : 2 * half])
        tails += errors.sum(axis=1)
        size += np.abs(errors).sum(axis=1)
        heads = np.concatenate([heads_now, heads[:, 2 * half :]], axis=1)
    total, rest = _two_sum(heads[:, 0], tails)
    bound = products.shape[1] * 2.0**-51 * size
    results = _rounded_to_odd(total, rest - bound).astype(np.float32)
    same = results == _rounded_to_odd(total, rest + bound).astype(np.float32)
    for row in np.flatnonzero(~(same & (bound <= np.abs(total) * 2.0**-60))):
        results[row] = _sum_of_any(products[row])
    return results


def _two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """The rounded sum of a and b and its error: together they are a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _rounded_to_odd(nearest: AnyArray, rest: AnyArray) -> AnyArray:
    """Of the two float64 around an inexact number the one whose last bit is 1; `nearest` is the nearer one, `rest` has the rest's sign."""
    towards = np.nextafter(nearest, np.copysign(np.inf, rest))
    return np.where((nearest.view(np.int64) & 1 == 1) | (rest == 0), nearest, towards)


def _sum_of_any(products: Float64) -> np.float32:
    """Step 3."""
    terms = products.tolist()
    nearest = math.fsum(terms)
    rest = math.fsum([*terms, -nearest])
    return np.float32(_rounded_to_odd(np.asarray(nearest), np.asarray(rest)))
