"""Products of the matrix unit against rational arithmetic; without a step of the proof they are wrong. Rounding to bfloat16."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from tests.support.cases import each, one_of
from tests.support.kernels import KERNELS, printed
from tpucc.floating import exact, matrix_unit
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.floating.matrix_unit import Machine
from tpucc.numerics import Float32
from tpucc.training.arithmetic import NUMPY

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an arithmetic leaves them to the caller

MACHINE = Machine(128)
LARGEST = Fraction(2) ** 128 - Fraction(2) ** 104
"""The largest finite float32."""
QUIET = 0x7FC00000


def nearest(value: Fraction) -> np.float32:
    """The float32 nearest to a rational number, ties to even: by integers alone."""
    if value == 0:
        return np.float32(0)
    exponent = max(abs(value.numerator).bit_length() - value.denominator.bit_length() - 24, -149)
    while abs(value) / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    while exponent > -149 and abs(value) / Fraction(2) ** exponent < 2**23:
        exponent -= 1
    result: Fraction = round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent  # round: ties to even
    return np.float32(float(result) if abs(result) <= LARGEST else float("inf") * (1 if value > 0 else -1))


def by_fractions(a: Float32, b: Float32, rows: int) -> Float32:
    """The rule of a product of finite operands, element by element."""
    a, b = round_to_bfloat16(a), round_to_bfloat16(b)
    result = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i, j in np.ndindex(result.shape):
        for first in range(0, a.shape[1], rows):
            part = slice(first, first + rows)
            terms = (Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a[i, part], b[part, j], strict=True))
            result[i, j] += nearest(sum(terms, Fraction(0)))
    return result


def wide(random: np.random.Generator, shape: tuple[int, int], spread: int) -> Float32:
    """Numbers of all signs whose exponents are spread over 2^-spread…1; one in ten is zero."""
    numbers = random.uniform(1, 2, shape) * random.choice([-1.0, 1.0, 0.0], shape, p=[0.45, 0.45, 0.1])
    return np.asarray(np.ldexp(numbers, -random.integers(0, spread + 1, shape)), np.float32)


def cancelling(random: np.random.Generator, depth: int, spread: int) -> tuple[Float32, Float32]:
    """A row and a column whose products cancel but for a few, and these lie near the middle between two float32."""
    half = (depth - 3) // 2
    row, column = wide(random, (1, half), spread), wide(random, (half, 1), spread)
    rest = depth - 2 * half
    ends = np.array([1.0, 2.0**-24, *np.ldexp(1.0, -random.integers(48, spread + 50, rest - 2))])
    signs = random.choice([-1.0, 1.0], rest)
    left = np.concatenate([row, -row, (ends * signs)[None].astype(np.float32)], axis=1)
    right = np.concatenate([column, column, np.ones((rest, 1), np.float32)])
    order = random.permutation(depth)
    return left[:, order], right[order]


def edge(random: np.random.Generator, spread: int) -> tuple[Float32, Float32]:
    """127 products whose sum lies half a last bit of float32 and 2^-(14 + spread) above an even number below 512.

    The two spreads of the exponents are `spread` together, so that the sum takes 9 + 14 + spread bits.
    """
    left = int(random.integers(8, spread - 7))
    right = spread - left
    row = [255 / 128] * 124 + [2.0**-8, 129 * 2.0 ** -(7 + left), -130 * 2.0 ** -(7 + left)]
    column = [255 / 128] * 124 + [2.0**-8, 129 * 2.0 ** -(7 + right), 128 * 2.0 ** -(7 + right)]
    order = random.permutation(127)
    return np.array([row], np.float32)[:, order], np.array([column], np.float32).T[order]


def same(found: Float32, expected: Float32) -> None:
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize(("depth", "spread"), one_of(4, product([1, 2, 127, 128, 129, 256, 300], [3, 12, 40, 115, 70])))
def test_products_are_exact_sums_rounded_once(depth: int, spread: int) -> None:
    random = np.random.default_rng([depth, spread])
    a, b = wide(random, (10, depth), spread), wide(random, (depth, 9), spread)
    same(MACHINE.product(a, b), by_fractions(a, b, 128))


@pytest.mark.parametrize("depth", [8, 31, 128, 200, 256])
def test_products_that_cancel(depth: int) -> None:
    random = np.random.default_rng(depth)
    for _ in range(60):
        a, b = cancelling(random, depth, int(random.integers(1, 110)))
        same(MACHINE.product(a, b), by_fractions(a, b, 128))


@each(range(28, 36))
def test_products_at_the_edge_of_float64(spread: int) -> None:
    """53 bits are those of spread 30."""
    random = np.random.default_rng(spread)
    for _ in range(20):
        a, b = edge(random, spread)
        assert MACHINE.product(a, b) == np.float32(124 * 65025 / 2**14 + 2.0**-15) == by_fractions(a, b, 128)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_correct", lambda *_: None),
        ("differ", lambda sums, bound: np.zeros(sums.shape, bool)),
        ("_two_sum", lambda a, b: (a + b, np.zeros_like(a))),
        ("_rounded_to_odd", lambda nearest, rest: nearest),
        ("_sum_of_any", lambda products: np.float32(products.sum())),
        ("EXACT_BITS", matrix_unit.EXACT_BITS + 1),
    ],
)
def test_without_a_step_of_the_proof_a_product_is_wrong(name: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, expected = hard_products()
    assert all((MACHINE.product(a, b) == e).all() for (a, b), e in zip(pairs, expected, strict=True))
    monkeypatch.setattr(exact if hasattr(exact, name) else matrix_unit, name, broken)
    assert any((MACHINE.product(a, b) != e).any() for (a, b), e in zip(pairs, expected, strict=True))


@cache
def hard_products() -> tuple[list[tuple[Float32, Float32]], list[Float32]]:
    """Operands, and their exact products."""
    random = np.random.default_rng(8)
    pairs = [cancelling(random, 128, spread) for spread in (10, 100) * 20] + [edge(random, 31) for _ in range(20)]
    powers = np.arange(exact.AT_ONCE + 1, dtype=np.int32)[:, None]  # so many rows that they don't come to step 4 at once
    pairs += [(np.ldexp(row, powers), column) for row, column in (cancelling(random, 128, spread) for spread in (10, 100) * 10)]
    pairs += [cancelling(random, 256, 100) for _ in range(10)]
    return pairs, [by_fractions(a, b, 128) for a, b in pairs]


@each(range(8))
def test_ragged_products_of_any_machine(seed: int) -> None:
    """Any shape, any number of rows, wide rows beside narrow ones, transposed operands, rounded before or not."""
    random = np.random.default_rng(seed)
    for _ in range(12):
        m, k, n, rows = (int(size) for size in random.integers(1, [6, 40, 6, 45]))
        a, b = wide(random, (m, k), 60), wide(random, (k, n), 60)
        a[random.random(m) < 0.5] = wide(random, (1, k), 5)
        b[:, random.random(n) < 0.5] = wide(random, (k, 1), 5)
        machine = Machine(rows)
        expected = by_fractions(a, b, rows)
        same(machine.product(a, b), expected)
        same(machine.product(np.asfortranarray(a), machine.operand(np.asfortranarray(b))), expected)
        same(machine.product(machine.operand(b).T, machine.operand(a).T), expected.T)


def test_operands_of_many_chunks() -> None:
    """Larger than a chunk of the rounding, and with more open sums than are gathered at a time; a few elements against the rule."""
    random = np.random.default_rng(1)
    a, b = wide(random, (300, 260), 30), wide(random, (260, 200), 30)
    found = MACHINE.product(a, b)
    rows, columns = random.integers(0, 300, 8), random.integers(0, 200, 8)
    same(found[np.ix_(rows, columns)], by_fractions(a[rows], b[:, columns], 128))
    same(MACHINE.product(MACHINE.operand(a.T).T, b), found)


def test_small_and_large_results() -> None:
    """Subnormal results are kept and rounded once; what is too large is infinite."""
    tiny = np.float32(2.0**-126)
    a = np.array([[1.0, 1.0], [1.5, 2.0**-20], [1.0, -1.0]], np.float32) * np.float32(2.0**-60)
    b = np.array([[2.0**-66 * 1.0078125, 2.0**-89], [2.0**-80, 2.0**-89 * 1.5]], np.float32)
    found = MACHINE.product(a, b)
    same(found, by_fractions(a, b, 128))
    assert ((found != 0) & (np.abs(found) < tiny)).any()
    large = np.full((1, 2), 2.0**64, np.float32)
    same(MACHINE.product(large, large.T), np.full((1, 1), np.inf, np.float32))
    assert MACHINE.product(large, np.array([[2.0**63], [-(2.0**63)]], np.float32)) == 0


def test_passes_are_added_in_float32_in_ascending_depth() -> None:
    ones = np.ones((1, 3), np.float32)
    assert Machine(1).product(ones, np.array([[2.0**24], [1], [1]], np.float32)) == 2**24
    assert Machine(1).product(ones, np.array([[1], [1], [2.0**24]], np.float32)) == 2**24 + 2
    assert Machine(3).product(ones, np.array([[2.0**24], [1], [1]], np.float32)) == 2**24 + 2
    infinite = np.array([[2.0**100], [2.0**100], [-(2.0**100)]], np.float32)
    same(Machine(1).product(infinite.T, np.abs(infinite)), np.array([[QUIET]], np.uint32).view(np.float32))


SPECIAL = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5, -2.0, 1e-40, 3.4e38, -3.4e38, 2.0**127], np.float32)


def with_specials(a: Float32, b: Float32, rows: int) -> np.float32:
    """The rule for one row and one column, in Python's floats: their range is so large that only infinite operands are infinite."""
    total = np.float32(0)
    for first in range(0, len(a), rows):
        terms = [float(p) * float(q) for p, q in zip(a[first : first + rows], b[first : first + rows], strict=True)]
        special = [term for term in terms if not np.isfinite(term)]
        with np.errstate(all="ignore"):
            total = np.float32(total + (np.float32(sum(special)) if special else nearest(sum(map(Fraction, terms), Fraction(0)))))
    return np.uint32(QUIET).view(np.float32) if np.isnan(total) else total


def test_infinities_and_nan_go_through_by_the_rules_of_float32() -> None:
    random = np.random.default_rng(5)
    for _ in range(60):
        depth, rows = int(random.integers(1, 9)), int(random.integers(1, 9))
        a, b = random.choice(SPECIAL, (4, depth)), random.choice(SPECIAL[3:], (depth, 5))
        b[random.random(b.shape) < 0.1] = np.inf
        left, right = round_to_bfloat16(a), round_to_bfloat16(b)
        expected = [[with_specials(left[i], right[:, j], rows) for j in range(5)] for i in range(4)]
        same(Machine(rows).product(a, b), np.array(expected, np.float32))


def test_no_product_is_a_negative_zero() -> None:
    a = np.array([[-0.0, 0.0], [-1.0, 1.0], [-(2.0**-100), 0.0]], np.float32)
    same(MACHINE.product(a, np.array([[0.0, 1.0, 2.0**-100], [-0.0, 1.0, 0.0]], np.float32))[[0, 1, 2], [0, 1, 2]], np.zeros(3, np.float32))


@each([(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_empty_products(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    same(MACHINE.product(np.ones((m, k), np.float32), np.ones((k, n), np.float32)), np.zeros((m, n), np.float32))


def test_products_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"product of \[2, 3\] and \[4, 2\]: the inner dimensions differ"):
        MACHINE.product(np.ones((2, 3), np.float32), np.ones((4, 2), np.float32))
    with pytest.raises(ValueError, match="a matrix unit of 0 rows"):
        Machine(0)


def test_the_host_s_product_is_numpy_s() -> None:
    a, b = wide(np.random.default_rng(0), (5, 7), 3), wide(np.random.default_rng(1), (7, 4), 3)
    same(NUMPY.product(a, b), a @ b)


def bfloat16_of(pattern: int) -> int:
    """The rule of rounding for one pattern of float32, by integers."""
    sign, magnitude = pattern & 0x80000000, pattern & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return QUIET
    upper, lower = divmod(magnitude, 2**16)
    upper += lower > 2**15 or (lower == 2**15 and upper % 2 == 1)
    return sign | (upper << 16 if upper >= 0x80 else 0)


def test_rounding_to_bfloat16() -> None:
    """All upper halves with the lower halves that matter, in one long array, and alone and transposed."""
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    uppers = np.concatenate([np.arange(0, 2**16, 17), [0, 0x7F, 0x80, 0x7F7F, 0x7F80, 0x7FFF, 0x8000, 0x807F, 0x8080, 0xFF7F, 0xFFFF]])
    patterns = (uppers.astype(np.uint32)[:, None] << 16) + lower
    expected = np.array([[bfloat16_of(int(pattern)) for pattern in row] for row in patterns], np.uint32)
    same(round_to_bfloat16(patterns.view(np.float32)), expected.view(np.float32))
    same(round_to_bfloat16(patterns.view(np.float32).T), expected.view(np.float32).T)
    for pattern, rounded in zip(patterns[-11:].flat, expected[-11:].flat, strict=True):
        same(round_to_bfloat16(np.full(3, pattern, np.uint32).view(np.float32)), np.full(3, rounded, np.uint32).view(np.float32))
    assert round_to_bfloat16(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_the_extreme_exponents_of_an_operand_are_those_of_its_rounded_values() -> None:
    """Also where rounding moves a number to the next power of two, to infinity, to zero or out of the subnormal ones."""
    random = np.random.default_rng(0)
    edges = np.array([0, 1, 0x7FFFFF, 0x7F8000, 0x7F7FFF, 0x800000, 0x3FFFFFFF, 0x7F7FFFFF, 0x7F7F7FFF, 0x7F800000, 0x7FFFFFFF], np.uint32)
    patterns = [random.choice(edges, (1, 2)) | random.choice(np.array([0, 2**31], np.uint32), (1, 2)) for _ in range(300)]
    patterns += [random.integers(0, 2**32, (1, 3), np.uint32) for _ in range(300)]
    for x in (pattern.view(np.float32) for pattern in patterns):
        found = matrix_unit.rounded(x)
        exponents = round_to_bfloat16(x).view(np.uint32) >> 23 & 255
        finite = exponents[(exponents > 0) & (exponents < 255)]
        assert (found.lowest, found.highest) == ((finite.min(), finite.max()) if finite.size else (0, 0))
        assert found.finite == (exponents < 255).all()


def fingerprint() -> str:
    """A digest of the bits of products whose float64 sums depend on the order of the additions, and of all functions."""
    random = np.random.default_rng(0)
    digest = hashlib.sha256()
    for shape, spread in product([(1, 300, 1), (7, 129, 5), (64, 64, 256), (200, 300, 100), (33, 1000, 70), (1, 200, 90)], [6, 60]):
        m, k, n = shape
        digest.update(MACHINE.product(wide(random, (m, k), spread), wide(random, (k, n), spread)).tobytes())
    for _ in range(50):
        digest.update(MACHINE.product(*cancelling(random, 128, 50)).tobytes())
    x = random.integers(0, 2**32, 10_000, dtype=np.uint32).view(np.float32)
    for function in (MACHINE.exp, MACHINE.log, MACHINE.tanh, MACHINE.erf, MACHINE.sigmoid):
        digest.update(function(x).tobytes())
    digest.update(MACHINE.sum(wide(random, (50, 77), 10), (0,)).tobytes())
    return digest.hexdigest()


@pytest.mark.long
@KERNELS
def test_same_bits_with_every_kernel_of_the_blas_and_any_threads(kernel: str, threads: int) -> None:
    assert printed(__file__, fingerprint.__name__, kernel, threads) == fingerprint()
