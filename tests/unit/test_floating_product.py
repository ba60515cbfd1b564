"""Products of the matrix unit against rational arithmetic, and the proof against itself: it can fail."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tpucc.floating import Machine, exact, round_to_bfloat16
from tpucc.numerics import Float32

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


def same(found: Float32, expected: Float32) -> None:
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("depth", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("spread", [3, 12, 40, 115])
def test_products_are_exact_sums_rounded_once(depth: int, spread: int) -> None:
    random = np.random.default_rng([depth, spread])
    a, b = wide(random, (7, depth), spread), wide(random, (depth, 6), spread)
    same(MACHINE.product(a, b), by_fractions(a, b, 128))


@pytest.mark.parametrize("depth", [8, 31, 128, 200])
def test_products_that_cancel(depth: int) -> None:
    random = np.random.default_rng(depth)
    for _ in range(75):
        a, b = cancelling(random, depth, int(random.integers(1, 110)))
        same(MACHINE.product(a, b), by_fractions(a, b, 128))


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_prove", lambda *_: None),
        ("_differ", lambda sums, bound: np.zeros(sums.shape, bool)),
        ("_rounded_to_odd", lambda nearest, rest: nearest),
        ("_sum_of_any", lambda products: np.float32(products.sum())),
        ("EXACT_BITS", 80),
    ],
)
def test_without_a_step_of_the_proof_a_product_is_wrong(name: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    pairs = [cancelling(random, 128, spread) for spread in (10, 100) * 20]
    expected = [by_fractions(a, b, 128) for a, b in pairs]
    assert all(MACHINE.product(a, b) == e for (a, b), e in zip(pairs, expected, strict=True))
    monkeypatch.setattr(exact, name, broken)
    assert any(MACHINE.product(a, b) != e for (a, b), e in zip(pairs, expected, strict=True))
