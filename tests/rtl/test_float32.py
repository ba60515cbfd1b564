"""float32 in integers: the bits of numpy's, whose operations are rounded as IEEE 754 says."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

pytestmark = pytest.mark.annex

BITS = {"sign": 1, "exponent": 10, "significand": 24}


def bits_of(value: np.float32) -> int:
    return int(np.float32(value).view(np.uint32))


def number(found: dict[str, int]) -> float:
    """The value of a `Float`, as a float64, which holds it exactly."""
    return (-1) ** found["sign"] * np.ldexp(float(found["significand"]), found["exponent"] - 300 - 23)


def parts(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in BITS}


def test_integers_become_the_nearest_float32(rtl: ModuleType) -> None:
    from tpucc.rtl.float32 import from_integer

    circuit = rtl.circuit({"n": 32}, lambda n: parts(from_integer(n)))
    random = np.random.default_rng(0)
    ties = [2**24 + 1, 2**24 + 3, 2**25 + 2, 2**25 + 6, 2**31 - 64, 2**31 - 65, 2**31 - 1]
    for value in [0, 1, -1, -(2**31), *ties, *(-each for each in ties), *random.integers(-(2**31), 2**31, 300).tolist()]:
        assert number(circuit.step(n=value)) == np.float64(np.int32(value).astype(np.float32)), value


def factors(random: np.random.Generator, count: int) -> np.ndarray:
    """float32 numbers of many sizes, some with few bits, so that products and sums have ties."""
    few = random.integers(-(2**12), 2**12, count)
    many = random.integers(-(2**24), 2**24, count)
    return (np.where(random.random(count) < 0.5, few, many) * np.ldexp(1.0, random.integers(-30, 8, count))).astype(np.float32)


def test_products_and_sums_are_rounded_once(rtl: ModuleType) -> None:
    from tpucc.rtl.float32 import from_bits, product, total

    product_of = rtl.circuit({"a": 32, "b": 32}, lambda a, b: parts(product(from_bits(a), from_bits(b))))
    sum_of = rtl.circuit({"a": 32, "b": 32}, lambda a, b: parts(total(from_bits(a), from_bits(b))))
    random = np.random.default_rng(1)
    a, b = factors(random, 1500), factors(random, 1500)
    b[:100] = -a[:100]
    b[100:300] = (a[100:300] * np.float32(-1 + 2.0**-20)).astype(np.float32)
    for one, other in zip(a, b, strict=True):
        bits = {"a": bits_of(one), "b": bits_of(other)}
        assert number(product_of.step(**bits)) == np.float64(one * other), (one, other)
        assert number(sum_of.step(**bits)) == np.float64(one + other), (one, other)


def test_sums_of_numbers_far_apart(rtl: ModuleType) -> None:
    """The smaller one lies below the last place of the larger, where it still decides ties."""
    from tpucc.rtl.float32 import from_bits, total

    circuit = rtl.circuit({"a": 32, "b": 32}, lambda a, b: parts(total(from_bits(a), from_bits(b))))
    for distance in range(20, 60):
        for large in (1.0, 1.5, 1 + 2.0**-23):
            for small in (1.0, -1.0, 1.5, -1.5, -1 - 2.0**-23):
                one, other = np.float32(large), np.float32(np.ldexp(small, -distance))
                assert number(circuit.step(a=bits_of(one), b=bits_of(other))) == np.float64(one + other), (one, other)
                assert number(circuit.step(a=bits_of(other), b=bits_of(one))) == np.float64(one + other), (one, other)


def test_rounding_to_integers_is_half_even(rtl: ModuleType) -> None:
    from tpucc.rtl.float32 import from_bits, to_integer

    circuit = rtl.circuit({"x": 32}, lambda x: {"integer": to_integer(from_bits(x))})
    ties = np.arange(-600, 600) / 2
    near = np.concatenate([np.nextafter(ties.astype(np.float32), np.float32(side)) for side in (-1e9, 1e9)])
    tiny = np.array([0.0, 2.0**-126, 1e-30, 0.49999997, 0.50000006, -0.49999997], np.float32)
    for value in np.concatenate([ties.astype(np.float32), near, tiny]):
        assert rtl.signed(circuit.step(x=bits_of(value))["integer"], 11) == np.rint(value), value
    for value in (600.0, -1e10, 3e38):
        assert abs(rtl.signed(circuit.step(x=bits_of(np.float32(value)))["integer"], 11)) == 511
