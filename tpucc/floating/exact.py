"""Products of the matrix unit: each pass is the exact sum of its products, rounded once to float32; passes are added in float32.

The sums are computed in float64, whose result depends on the order of the additions only where it rounds. So each pass comes with a proof
that it didn't round, or that rounding changed nothing, in four steps, of which each looks only at what the one before left open:

1. *Exponents.* A product of two bfloat16 values has 16 bits. If K products lie within so few powers of two that
   log2 K + the spread of the exponents of the row + that of the column + 16 ≤ 53, then all partial sums are integers below 2^53 in units
   of the smallest possible product's last bit. So they are exact, in any order, with or without fused multiply-add.
2. *A bound of the error.* Any order of K - 1 additions is wrong by at most (K - 1) · 2^-53 · sum |products|, to first order (Higham,
   "Accuracy and Stability of Numerical Algorithms", section 4.2). If the sum less the bound and the sum plus the bound round to the same
   float32, the sum does.
3. *Two numbers.* The products are added in a tree, and the error of each addition is kept (two-sum: Knuth, "The Art of Computer
   Programming", volume 2, section 4.2.2). The bound is then that of the sum of the errors.
4. `math.fsum`, which is exact whatever the exponents are.

Steps 3 and 4 round to odd in float64 before they round to float32: rounding twice is then the same as rounding once (Boldo and Melquiond,
"Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).

Infinities and NaN are taken out before, and put back by the rules of float32: NaN times anything and infinity times zero are NaN, and so is
a sum with infinities of both signs. No result is -0, because a row's sum begins at +0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.floating.bfloat16 import CHUNK, NAN, Exponents, round_chunk
from tpucc.numerics import AnyArray, Float32, Float64

Places = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

BIAS = 127
"""Of the exponents of float32 and bfloat16."""
EXACT_BITS = 53 - 16
"""Bits of a float64 less those of a product: what the exponents' spreads and log2 K may take together."""
FEW = 8
"""Up to one element of so many is looked at alone; if more are open, the whole pass."""
TOGETHER = 2**19
"""Products of open sums that are gathered at a time."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """An operand [M, N] rounded to bfloat16, with what the proof needs. `T` is the transposed operand, without another rounding."""

    values: Float64
    """The rounded values, exactly; infinities and NaN are 0 here."""
    exponents: Exponents
    """Of each value, biased; 0 where the value is."""
    lowest: int
    """The smallest exponent of a nonzero value; 0 if there is none."""
    highest: int
    special: Float32 | None
    """The rounded values with infinities and NaN; None if all are finite."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.values.shape

    @property
    def T(self) -> Rounded:
        """The same values, rows and columns exchanged; a view."""
        special = None if self.special is None else self.special.T
        return Rounded(self.values.T, self.exponents.T, self.lowest, self.highest, special)


def rounded(x: Float32) -> Rounded:
    """The operand x [M, N] of a product, rounded once for any number of products."""
    if not x.flags.c_contiguous and x.flags.f_contiguous:
        return rounded(x.T).T
    flat = np.ascontiguousarray(x, np.float32).reshape(-1)
    exponents = np.empty(flat.shape, np.uint8)
    if flat.size <= CHUNK:
        bits = np.empty(flat.shape, np.uint32)
        round_chunk(flat, bits, exponents)
        values = bits.view(np.float32).astype(np.float64)
    else:
        values = np.empty(flat.shape, np.float64)
        bits = np.empty(CHUNK, np.uint32)
        for first in range(0, flat.size, CHUNK):
            part = slice(first, first + CHUNK)
            some = bits[: exponents[part].size]
            round_chunk(flat[part], some, exponents[part])
            values[part] = some.view(np.float32)
    special = None
    highest = int(exponents.max(initial=0))
    if highest == 255:
        special = values.astype(np.float32).reshape(x.shape)
        values[exponents == 255] = 0.0
        exponents[exponents == 255] = 0
        highest = int(exponents.max(initial=0))
    lowest = (int((exponents - np.uint8(1)).min(initial=255)) + 1) % 256  # of zero, 0 - 1 is 255
    return Rounded(values.reshape(x.shape), exponents.reshape(x.shape), lowest, highest, special)


def product(a: Rounded, b: Rounded, rows: int) -> Float32:
    """a [M, K] times b [K, N] in passes of `rows` of the depth: float32 [M, N]. The rule stands at the top of the module."""
    depth = a.shape[1]
    if depth != b.shape[0]:
        raise ValueError(f"product of {list(a.shape)} and {list(b.shape)}: the inner dimensions differ")
    in_range = a.highest + b.highest - 2 * BIAS + 2 + depth.bit_length() < 128
    if in_range and a.special is None and b.special is None:
        return _passes(a, b, rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total = _passes(a, b, rows)
    total[np.isnan(total)] = NAN
    return total


def _passes(a: Rounded, b: Rounded, rows: int) -> Float32:
    depth = a.shape[1]
    budget = EXACT_BITS - max(min(depth, rows) - 1, 0).bit_length()
    proved = a.highest - a.lowest + b.highest - b.lowest <= budget
    finite = a.special is None and b.special is None
    total: Float32 = np.zeros((a.shape[0], b.shape[1]), np.float32)
    sums: Float64 | None = None
    for first in range(0, depth, rows):
        part = slice(first, first + rows)
        left, right = a.values[:, part], b.values[part]
        sums = np.matmul(left, right, out=sums)
        once = sums.astype(np.float32)
        if not proved:
            _prove(sums, once, a, b, part, budget)
        if not finite:
            _put_back(once, a, b, part)
        np.add(total, once, out=total)
    return total


def _prove(sums: Float64, once: Float32, a: Rounded, b: Rounded, part: slice, budget: int) -> None:
    """Steps 1 to 4 for one pass: corrects `once` [M, N], the rounded `sums`, where these could be rounded wrongly."""
    left, right = a.exponents[:, part], b.exponents[part]
    highest_left, highest_right = left.max(axis=1), right.max(axis=0)
    # The spread, modulo 256: of a row of zeros 0 - (0 - 1) - 1, which is 0.
    spread_left = highest_left - (left - np.uint8(1)).min(axis=1) - np.uint8(1)
    spread_right = highest_right - (right - np.uint8(1)).min(axis=0) - np.uint8(1)
    if int(spread_left.max(initial=0)) + int(spread_right.max(initial=0)) <= budget:
        return
    wide = np.greater.outer(spread_left.astype(np.int16), budget - spread_right.astype(np.int16))
    rows, columns = _open(sums, wide, highest_left, highest_right, left.shape[1])
    at_once = TOGETHER // left.shape[1]
    for first in range(0, rows.size, at_once):
        i, j = rows[first : first + at_once], columns[first : first + at_once]
        once[i, j] = exact_sums(a.values[i, part] * b.values[part, j].T)


def _open(sums: Float64, wide: Booleans, left: Exponents, right: Exponents, depth: int) -> tuple[Places, Places]:
    """Step 2: rows and columns of the `wide` sums whose rounding the bound of their error leaves open.

    `left` [M] and `right` [N] are the highest exponents. A product is below 2^(left + right + 2), so K of them are wrong by less than
    K² · 2^(left + right + 2 - 53); twice that covers the rounding of sum ± bound too.
    """
    reach_left = np.ldexp(depth * depth * 2.0**-50, left.astype(np.int32) - BIAS)
    reach_right = np.ldexp(1.0, right.astype(np.int32) - BIAS)
    if np.count_nonzero(wide) * FEW > wide.size:
        rows, columns = np.nonzero(wide & _differ(sums, np.multiply.outer(reach_left, reach_right)))
        return rows, columns
    rows, columns = np.nonzero(wide)
    still = _differ(sums[rows, columns], reach_left[rows] * reach_right[columns])
    return rows[still], columns[still]


def _differ(sums: Float64, bound: Float64) -> Booleans:
    different: Booleans = (sums - bound).astype(np.float32) != (sums + bound).astype(np.float32)
    return different


def exact_sums(products: Float64) -> Float32:
    """Steps 3 and 4: the exact sum of each row of products [n, K], rounded once to float32 [n].

    The products are exact and finite, and none is subnormal in float64.
    """
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
    nearest = math.fsum(products)
    rest = math.fsum([*products, -nearest])
    return np.float32(_rounded_to_odd(np.asarray(nearest), np.asarray(rest)))


def _put_back(once: Float32, a: Rounded, b: Rounded, part: slice) -> None:
    """Infinities and NaN of one pass: counts the infinite products of each sign, exactly, and corrects `once` [M, N]."""
    left = (a.values if a.special is None else a.special)[:, part].astype(np.float64)
    right = (b.values if b.special is None else b.special)[part].astype(np.float64)
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
