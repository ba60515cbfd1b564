"""Products of the matrix unit: each pass is the exact sum of its products, rounded once to float32; passes are added in float32.

The sums are computed in float64, whose result depends on the order of the additions only where it rounds. So each pass comes with a proof
that it didn't round, or that rounding changed nothing, in four steps, of which each looks only at what the one before left open:

1. *Exponents.* A product of two bfloat16 values has 16 bits. If K products lie within so few powers of two that
   log2 K + the spread of the exponents of the row + that of the column + 16 ≤ 53, then all partial sums are integers below 2^53 in units
   of the smallest possible product's last bit. So they are exact, in any order, with or without fused multiply-add.
2. *A bound of the error.* Any order of K - 1 additions is wrong by at most (K - 1) · 2^-53 · sum |products|, to first order (Higham,
   "Accuracy and Stability of Numerical Algorithms", section 4.2). If the sum less the bound and the sum plus the bound round to the same
   float32, the sum does. The bound here is twice as large, which covers its own rounding and that of sum ± bound.
3. *Two numbers.* The products are added in a tree, and the error of each addition is kept (two-sum: Knuth, "The Art of Computer
   Programming", volume 2, section 4.2.2). The bound is then that of the sum of the errors.
4. `math.fsum`, which is exact whatever the exponents are. A few sums come to it at once: arrays of so few rows are slower.

Steps 3 and 4 round to odd in float64 before they round to float32: rounding twice is then the same as rounding once (Boldo and Melquiond,
"Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).

Infinities and NaN are taken out before, and put back by the rules of float32: NaN times anything and infinity times zero are NaN, and so is
a sum with infinities of both signs. No result is -0, because a row's sum begins at +0.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.floating.bfloat16 import CHUNK, INFINITE, NAN, Bits, extremes, round_chunk
from tpucc.numerics import AnyArray, Float32, Float64

Exponents = npt.NDArray[np.uint8]
Differences = npt.NDArray[np.int16]
Spreads = dict[int, Differences]
"""By the rows of a pass."""
Places = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

ZERO = np.array(0, np.float32)
EXPONENT_PLACES = np.array(23, np.uint32)
ONE = np.array(1, np.uint8)
BIAS = 127
"""Of the exponents of float32 and bfloat16."""
EXACT_BITS = 53 - 16
"""Bits of a float64 less those of a product: what the exponents' spreads and log2 K may take together."""
FEW = 8
"""Up to one element of so many is looked at alone; if more are open, the whole pass."""
AT_ONCE = 4
"""Sums of which step 3 would take longer than step 4."""
TOGETHER = 2**19
"""Products of open sums that are gathered at a time."""
PART, LEAST_ROWS = 2**15, 64
"""Elements of a part of an operand or of a product of float32 numbers, and the rows that it has at least: it stays in a cache."""
SMALL = 512
"""Sums that take no longer than the calls themselves."""
NOWHERE = np.empty(0, np.intp), np.empty(0, np.intp)


class Rounded(NamedTuple):
    """An operand [M, N] rounded to bfloat16, with what the proof needs."""

    values: Float64
    """The rounded values, exactly; infinities and NaN are 0 here."""
    bits: Bits
    """The rounded values as patterns of float32."""
    lowest: int
    """The smallest exponent of a finite value that isn't zero, biased; 0 if there is none."""
    highest: int
    """The largest one."""
    finite: bool
    """Whether no value is infinite or NaN."""
    known: tuple[Spreads, Spreads]
    """What `spreads` has found, for the columns and for the rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.values.shape

    @property
    def T(self) -> Rounded:
        """The transposed operand: the same values, not rounded again."""
        return Rounded(self.values.T, self.bits.T, self.lowest, self.highest, self.finite, self.known[::-1])

    def spreads(self, rows: int) -> Differences:
        """The highest less the lowest exponent of each column, in each pass of `rows` rows: [passes, N]."""
        if (found := self.known[0].get(rows)) is None:
            found = self.known[0][rows] = _spreads(self.exponents, rows)
        return found

    @property
    def exponents(self) -> Exponents:
        """Of each value, biased: 2^(e - 127) ≤ |x| < 2^(e - 126); 0 of zero, infinity and NaN, which the proof leaves out."""
        exponents = (self.bits >> EXPONENT_PLACES).astype(np.uint8)  # the sign is the ninth bit, and is dropped
        if not self.finite:
            exponents[exponents == 255] = 0
        return exponents


def rounded(x: Float32) -> Rounded:
    """The operand x [M, N] of a product, rounded once for any number of products."""
    if not x.flags.c_contiguous and x.flags.f_contiguous:
        return rounded(x.T).T
    x = np.ascontiguousarray(x, np.float32)
    bits = np.empty(x.shape, np.uint32)
    if 0 < x.size <= CHUNK:
        lowest, highest = round_chunk(x, bits)
        values = bits.view(np.float32).astype(np.float64)
    else:
        values = np.empty(x.shape, np.float64)
        lowest, highest = _round_in_chunks(x.reshape(-1), bits.reshape(-1), values.reshape(-1))
    finite = highest < INFINITE
    if not finite:
        infinite = ~np.isfinite(values)
        values[infinite] = 0.0
        _, highest = extremes(np.where(infinite, np.uint32(0), bits))
        lowest = min(lowest, highest)
    return Rounded(values, bits, lowest >> 24, highest >> 24, finite, ({}, {}))


def _round_in_chunks(flat: Float32, bits: Bits, values: Float64) -> tuple[int, int]:
    """`round_chunk` for all chunks together; the rounded values [n] are written too."""
    lowest, highest = 0, 0
    for first in range(0, flat.size, CHUNK):
        part = slice(first, first + CHUNK)
        low, high = round_chunk(flat[part], bits[part])
        values[part] = bits[part].view(np.float32)
        lowest, highest = min(lowest or low, low or lowest), max(highest, high)
    return lowest, highest


def product(a: Rounded, b: Rounded, rows: int) -> Float32:
    """a [M, K] times b [K, N] in passes of `rows` of the depth: float32 [M, N]. The rule stands at the top of the module.

    Raises ValueError if the inner dimensions differ.
    """
    depth = a.shape[1]
    if depth != b.shape[0]:
        raise ValueError(f"product of {list(a.shape)} and {list(b.shape)}: the inner dimensions differ")
    if a.finite and b.finite and a.highest + b.highest - 2 * BIAS + 2 + depth.bit_length() < 128:
        return _passes(a, b, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total = _passes(a, b, rows)
    total[np.isnan(total)] = NAN
    return total


def _passes(a: Rounded, b: Rounded, rows: int) -> Float32:
    """All passes, added in ascending depth. A pass of one product is a float32 product."""
    depth = a.shape[1]
    if depth == 1:
        return np.asarray(a.bits.view(np.float32) * b.bits.view(np.float32) + ZERO)
    budget = EXACT_BITS - max(min(depth, rows) - 1, 0).bit_length()
    wide = a.highest - a.lowest + b.highest - b.lowest > budget
    if depth > rows and (total := _at_once(a, b, rows, wide)) is not None:
        return total
    total, sums = ZERO, None
    for first in range(0, depth, rows):
        part = slice(first, first + rows)
        if depth <= rows:
            sums = np.dot(a.values, b.values)
        else:
            sums = np.matmul(a.values[:, part], b.values[part], out=sums)  # unlike `dot`, it copies no part
        once = sums.astype(np.float32)
        if wide:
            _correct(once, sums, a, b, rows, first, budget)
        if not (a.finite and b.finite):
            _put_back(once, a, b, part)
        total = np.add(once, total, out=once)
    return total if depth else np.zeros((a.shape[0], b.shape[1]), np.float32)


def _at_once(a: Rounded, b: Rounded, rows: int, wide: bool) -> Float32 | None:
    """The same of a few finite sums whose passes are all full, where step 2 leaves none open; None elsewhere."""
    height, depth, width = *a.shape, b.shape[1]
    if height * width > SMALL or depth % rows or not (a.finite and b.finite):
        return None
    sums = np.matmul(a.values.reshape(height, -1, rows).swapaxes(0, 1), b.values.reshape(-1, rows, width))
    if wide and np.count_nonzero(_differ(sums, _coarse_bound(a, b, rows))):
        return None
    return functools.reduce(np.add, sums.astype(np.float32), ZERO)


def _correct(once: Float32, sums: Float64, a: Rounded, b: Rounded, rows: int, first: int, budget: int) -> None:
    """Corrects `once` [M, N], the rounded `sums` of the pass from depth `first` on, where these could be rounded wrongly.

    `budget` is what the spreads of a row and a column may be together.
    """
    left, right = a.values[:, first : first + rows], b.values[first : first + rows]
    coarse = _coarse_bound(a, b, len(right))
    places = _soon(sums, coarse, len(right))
    if places is None:
        spread_left, spread_right = a.T.spreads(rows)[first // rows], b.spreads(rows)[first // rows]
        if np.maximum.reduce(spread_left) + np.maximum.reduce(spread_right) <= budget:
            return
        places = _open(sums, np.greater.outer(spread_left, budget - spread_right), left, right, coarse)
    at_once = max(TOGETHER // len(right), 1)
    for start in range(0, places[0].size, at_once):
        some = places[0][start : start + at_once], places[1][start : start + at_once]
        products = left[some[0]] * right[:, some[1]].T
        still = _differ(sums[some], np.add.reduce(np.abs(products), 1) * (len(right) * 2.0**-52))
        if still.any():
            once[some[0][still], some[1][still]] = exact_sums(products[still])


def _coarse_bound(a: Rounded, b: Rounded, depth: int) -> Float64:
    """Of the error of every sum of so many products, from the highest exponents of all. An array without axes."""
    return np.array(math.ldexp(depth * depth, a.highest + b.highest - 2 * BIAS - 50))


def _soon(sums: Float64, coarse: Float64, depth: int) -> tuple[Places, Places] | None:
    """Step 2 before step 1: rows and columns of the sums that the `coarse` bound of all leaves open; None where these aren't few.

    Tried only where that takes less time than step 1: where sums are few, or few beside the elements of the operands.
    """
    if sums.size > SMALL and sums.size * FEW * FEW > depth * sum(sums.shape):
        return None
    different = _differ(sums, coarse)
    count = np.count_nonzero(different)
    if count == 0:
        return NOWHERE
    return _places(different) if count * FEW <= different.size else None


def _spreads(exponents: Exponents, rows: int) -> Differences:
    """The highest less the lowest exponent of each pass and row or column: [passes, N], of exponents [K, N]."""
    highest = _reduced(np.maximum, exponents, rows)
    lowest = _reduced(np.minimum, exponents - ONE, rows)  # less one: zeros, now 255, don't count
    return (highest - lowest - ONE).astype(np.int16)  # modulo 256, which makes 0 of no number but zeros


def _reduced(function: np.ufunc, exponents: Exponents, rows: int) -> Exponents:
    depth, columns = exponents.shape
    passes = depth // rows
    whole = function.reduce(exponents[: passes * rows].reshape(passes, rows, columns), axis=1)
    if passes * rows == depth:
        return np.asarray(whole)
    return np.concatenate([whole, function.reduce(exponents[passes * rows :], axis=0, keepdims=True)])


def _open(sums: Float64, wide: Booleans, a: Float64, b: Float64, coarse: Float64) -> tuple[Places, Places]:
    """Step 2: rows and columns of the `wide` sums [M, N] of a [M, K] times b [K, N] whose rounding a bound of their error leaves open.

    Of few sums it is `coarse`, a bound of all. Else it follows from the sum of the products' magnitudes, which is at most the length of
    the row times that of the column, by Cauchy and Schwarz.
    """
    if np.count_nonzero(wide) * FEW > wide.size:
        reach_left = np.sqrt(np.einsum("mk,mk->m", a, a)) * (len(b) * 2.0**-52)
        reach_right = np.sqrt(np.einsum("kn,kn->n", b, b))
        return _places(wide & _differ(sums, np.multiply.outer(reach_left, reach_right)))
    rows, columns = _places(wide)
    still = _differ(sums[rows, columns], coarse)
    return rows[still], columns[still]


def _places(wide: Booleans) -> tuple[Places, Places]:
    """`np.nonzero`, which is slow with two axes."""
    rows, columns = np.divmod(np.flatnonzero(wide), wide.shape[1])
    return rows, columns


def _differ(sums: Float64, bound: Float64) -> Booleans:
    different: Booleans = (sums - bound).astype(np.float32) != (sums + bound).astype(np.float32)
    return different


def float32_product(a: Float32, b: Float32) -> Float32:
    """Float32 operands, which aren't rounded: a [..., M, K] times b [..., K, N], each sum exact and rounded once; float32 [..., M, N].

    A product of two float32 numbers is exact in float64, so steps 2, 3 and 4 hold for them too. Infinities and NaN are as IEEE 754 has
    them, NaN always `NAN`. Raises ValueError if the sizes don't fit.
    """
    right = b.astype(np.float64)
    reach = np.sqrt(np.einsum("...kn,...kn->...n", right, right))[..., np.newaxis, :] * (right.shape[-2] * 2.0**-52)
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
    """a [..., M, K] times `right` [..., K, N], and the elements that step 2 leaves open.

    Its bound is `reach` [..., 1, N] times the length of a row.
    """
    left = a.astype(np.float64)
    sums = np.matmul(left, right)
    bound = np.sqrt(np.einsum("...mk,...mk->...m", left, left))[..., np.newaxis] * reach
    once = (sums - bound).astype(np.float32)
    sums += bound
    return once, once != sums.astype(np.float32)


def _sum_again(once: Float32, places: Places, a: Float32, right: Float64) -> None:
    """Puts the exact sums of a [..., M, K] times `right` [..., K, N] into `places` of `once` [..., M, N]."""
    lefts = np.broadcast_to(a[..., :, np.newaxis, :], (*once.shape, a.shape[-1]))
    rights = np.broadcast_to(np.swapaxes(right, -1, -2)[..., np.newaxis, :, :], lefts.shape)
    at_once = max(TOGETHER // max(1, a.shape[-1]), 1)
    for start in range(0, places.size, at_once):
        some = np.unravel_index(places[start : start + at_once], once.shape)
        products = lefts[some] * rights[some]
        sums = np.add.reduce(products, 1)
        results = sums.astype(np.float32)
        still = _differ(sums, np.add.reduce(np.abs(products), 1) * (products.shape[1] * 2.0**-52)) & np.isfinite(sums)
        if still.any():
            results[still] = exact_sums(products[still])
        results[np.isnan(sums)] = NAN
        once[some] = results


def exact_sums(products: Float64) -> Float32:
    """Steps 3 and 4: the exact sum of each row of products [n, K], rounded once to float32 [n].

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
    """Step 4."""
    terms = products.tolist()
    nearest = math.fsum(terms)
    rest = math.fsum([*terms, -nearest])
    return np.float32(_rounded_to_odd(np.asarray(nearest), np.asarray(rest)))


def _put_back(once: Float32, a: Rounded, b: Rounded, part: slice) -> None:
    """Infinities and NaN of one pass: counts the infinite products of each sign, exactly, and corrects `once` [M, N]."""
    left = a.bits[:, part].view(np.float32).astype(np.float64)
    right = b.bits[part].view(np.float32).astype(np.float64)
    infinite_left, infinite_right = np.isinf(left), np.isinf(right)
    sign_left, sign_right = np.nan_to_num(np.sign(left)), np.nan_to_num(np.sign(right))
    finite_left = np.where(infinite_left, 0.0, sign_left)
    # Infinite times anything, and finite times infinite.
    signs = (sign_left * infinite_left) @ sign_right + finite_left @ (sign_right * infinite_right)
    count = infinite_left.astype(float) @ np.abs(sign_right) + np.abs(finite_left) @ infinite_right.astype(float)
    invalid = infinite_left.astype(float) @ (right == 0) + (left == 0).astype(float) @ infinite_right.astype(float)
    nan_left, nan_right = np.isnan(left).any(axis=1, keepdims=True), np.isnan(right).any(axis=0, keepdims=True)
    bad = (invalid > 0) | (np.abs(signs) < count) | nan_left | nan_right
    np.copyto(once, np.copysign(np.inf, signs), where=count > 0, casting="same_kind")
    np.copyto(once, NAN, where=bad)
