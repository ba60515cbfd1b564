"""The arithmetic of a matrix unit for bfloat16: each pass of a product is the exact sum of its products, rounded once to float32; passes
are added in float32.

The sums are exact as in `tpucc.floating.exact`, with one step of the proof before its others:

1. *Exponents.* A product of two bfloat16 values has 16 bits. If K products lie within so few powers of two that
   log2 K + the spread of the exponents of the row + that of the column + 16 ≤ 53, then all partial sums are integers below 2^53 in units
   of the smallest possible product's last bit. So they are exact, in any order, with or without fused multiply-add.
2. *A bound of the error*, and what follows it there.

Infinities and NaN are taken out before, and put back by the rules of float32: NaN times anything and infinity times zero are NaN, and so is
a sum with infinities of both signs. No result is -0, because a row's sum begins at +0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tpucc.floating import exact
from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.bfloat16 import INFINITE, Bits, extremes, round_chunk
from tpucc.floating.exact import Booleans, Indices
from tpucc.floating.functions import CHUNK
from tpucc.floating.nan import NAN
from tpucc.numerics import Float32, Float64

Exponents = npt.NDArray[np.uint8]
Differences = npt.NDArray[np.int16]
Spreads = dict[int, Differences]
"""By the rows of a pass."""

EXPONENT_PLACES = np.array(23, np.uint32)
ONE = np.array(1, np.uint8)
BIAS = 127
"""Of the exponents of float32 and bfloat16."""
EXACT_BITS = 53 - 16
"""Bits of a float64 less those of a product: what the exponents' spreads and log2 K may take together."""
FEW = 512
"""Sums for which step 2, with one bound of all, takes less time than step 1."""
SPARSE = 16
"""Where at most one of so many sums is wide, the bound is computed for the wide ones alone."""


@dataclass(frozen=True)
class Machine(Arithmetic):
    """A machine with a matrix unit for bfloat16 of `rows` rows, and a float32 vector unit. Same bits on every processor.

    A product rounds its operands to bfloat16, as `round_to_bfloat16` does. Its depth is cut into passes of `rows`. A pass is the exact
    sum of its products, rounded once to float32; passes are added in float32, the first first (`product`). Sums and functions
    are those of every processor.
    """

    rows: int
    """Rows of the matrix unit: 128 on TPU v2."""
    name = "machine"

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"a matrix unit of {self.rows} rows")

    def operand(self, x: Float32) -> Rounded:
        return rounded(x)

    def product(self, a: Float32 | Rounded, b: Float32 | Rounded) -> Float32:
        left = a if isinstance(a, Rounded) else self.operand(a)
        right = b if isinstance(b, Rounded) else self.operand(b)
        return product(left, right, self.rows)

    def products(self, a: Float32, b: Float32) -> Float32:
        return one_by_one(self.product, a, b)


def one_by_one(product: Callable[[Float32, Float32], Float32], a: Float32, b: Float32) -> Float32:
    """The product of each matrix of a [B, M, K] with its one of b [B, K, N]; float32 [B, M, N]."""
    found = [product(left, right) for left, right in zip(a, b, strict=True)]
    return np.stack(found) if found else np.zeros((0, a.shape[1], b.shape[2]), np.float32)


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
        return np.asarray(a.bits.view(np.float32) * b.bits.view(np.float32) + exact.ZERO)
    budget = EXACT_BITS - max(min(depth, rows) - 1, 0).bit_length()
    wide = a.highest - a.lowest + b.highest - b.lowest > budget
    total, sums = exact.ZERO, None
    for first in range(0, depth, rows):
        part = slice(first, first + rows)
        sums = np.matmul(a.values[:, part], b.values[part], out=sums)  # unlike `dot`, it copies no part
        once = sums.astype(np.float32)
        if wide:
            _correct(once, sums, a, b, rows, first, budget)
        if not (a.finite and b.finite):
            _put_back(once, a, b, part)
        total = np.add(once, total, out=once)
    return total if depth else np.zeros((a.shape[0], b.shape[1]), np.float32)


def _correct(once: Float32, sums: Float64, a: Rounded, b: Rounded, rows: int, first: int, budget: int) -> None:
    """Corrects `once` [M, N], the rounded `sums` of the pass from depth `first` on, where these could be rounded wrongly.

    `budget` is what the spreads of a row and a column may be together.
    """
    left, right = a.values[:, first : first + rows], b.values[first : first + rows]
    largest = math.ldexp(len(right) ** 2, a.highest + b.highest - 2 * BIAS - 50)  # what no sum's error exceeds
    if sums.size <= FEW and not exact.differ(sums, np.array(largest)).any():
        return
    spread_left, spread_right = a.T.spreads(rows)[first // rows], b.spreads(rows)[first // rows]
    if np.maximum.reduce(spread_left) + np.maximum.reduce(spread_right) <= budget:
        return
    places = _open(sums, np.greater.outer(spread_left, budget - spread_right), left, right)
    at_once = max(exact.TOGETHER // len(right), 1)
    for start in range(0, places[0].size, at_once):
        some = places[0][start : start + at_once], places[1][start : start + at_once]
        products = left[some[0]] * right[:, some[1]].T
        still = exact.differ(sums[some], np.add.reduce(np.abs(products), 1) * (len(right) * 2.0**-52))
        if still.any():
            once[some[0][still], some[1][still]] = exact.exact_sums(products[still])


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


def _open(sums: Float64, wide: Booleans, a: Float64, b: Float64) -> tuple[Indices, Indices]:
    """Step 2: rows and columns of the `wide` sums [M, N] of a [M, K] times b [K, N] whose rounding a bound of their error leaves open.

    The bound follows from the sum of the products' magnitudes, which is at most the length of the row times that of the column, by Cauchy
    and Schwarz.
    """
    reach_left = np.sqrt(np.einsum("mk,mk->m", a, a)) * (len(b) * 2.0**-52)
    reach_right = np.sqrt(np.einsum("kn,kn->n", b, b))
    if np.count_nonzero(wide) * SPARSE > wide.size:
        return _places(wide & exact.differ(sums, np.multiply.outer(reach_left, reach_right)))
    rows, columns = _places(wide)
    still = exact.differ(sums[rows, columns], reach_left[rows] * reach_right[columns])
    return rows[still], columns[still]


def _places(chosen: Booleans) -> tuple[Indices, Indices]:
    """`np.nonzero`, which is slow with two axes."""
    rows, columns = np.divmod(np.flatnonzero(chosen), chosen.shape[1])
    return rows, columns


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
