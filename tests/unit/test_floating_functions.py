"""exp, log, tanh, erf and sigmoid of the machine, against float64: their errors, and the values at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.seeds import run_seed
from tpucc.floating.matrix_unit import Machine
from tpucc.numerics import Float32, Float64
from tpucc.training.arithmetic import NUMPY

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an arithmetic leaves them to the caller

MACHINE = Machine(128)
NAMES = ("exp", "log", "tanh", "erf", "sigmoid")
ULP = {"exp": 2.0, "log": 2.0, "tanh": 2.0, "erf": 2.0, "sigmoid": 3.0}
INF = float("inf")
PATTERNS = 2**32
TOGETHER = 2**16


def in_float64(name: str, x: Float32) -> Float64:
    """The function in float64: of its error nothing is seen in float32."""
    with np.errstate(all="ignore"):
        if name == "sigmoid":
            return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))
        if name == "erf":
            return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)))
        return np.asarray(getattr(np, name)(x.astype(np.float64)))


def errors(name: str, x: Float32) -> Float64:
    """In units of the last place of the exact result. What isn't finite in float32 must be equal, and has the error 0; else infinity."""
    found, expected = getattr(MACHINE, name)(x), in_float64(name, x)
    with np.errstate(all="ignore"):
        once = expected.astype(np.float32)
        powers = (once.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)  # of two, below the result
        apart = np.abs(found - expected) / np.maximum(powers * np.float32(2.0**-23), np.float32(2.0**-149))
    if np.isfinite(apart).all():
        return np.asarray(apart)
    equal = (found == once) | (np.isnan(found) & np.isnan(once))
    return np.where(np.isfinite(once) & np.isfinite(found), apart, np.where(equal, 0.0, np.inf))


@each(NAMES)
def test_errors_are_small_everywhere(name: str) -> None:
    """Every so many patterns, of all exponents and both signs, and a row of neighbours where the formula changes."""
    x = np.arange(0, PATTERNS, 99_991 if name == "erf" else 7_919, dtype=np.int64).astype(np.uint32).view(np.float32)
    assert errors(name, x).max() <= ULP[name]
    ends = np.array([0.625, 1.0, 4.0, 9.01, 10.0, 88.72284, -87.33655, -103.97208, 0.70710677, 1.1754944e-38, 16.635532], np.float32)
    near = (ends.view(np.int32)[:, None] + np.arange(-200, 200, dtype=np.int32)).view(np.float32)
    assert errors(name, near).max() <= ULP[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_small_for_every_float32(name: str) -> None:
    """In one run every eighth row of neighbours, and in eight runs of other seeds all of them."""
    for first in range(run_seed() % 8 * TOGETHER, PATTERNS, 8 * TOGETHER):
        x = np.arange(first, first + TOGETHER, dtype=np.int64).astype(np.uint32).view(np.float32)
        if name != "erf" or 2.0**-30 < abs(x[0]) < 8:
            assert errors(name, x).max() <= ULP[name]


@each(
    [
        ("exp", [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (89, INF), (-104, 0), (1e-45, 1), (3.4e38, INF), (-3.4e38, 0)]),
        ("log", [(0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (-INF, np.nan), (-1, np.nan), (-1e-45, np.nan)]),
        ("tanh", [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (20, 1), (-1e-45, -1e-45), (3.4e38, 1)]),
        ("erf", [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (4, 1), (-1e-45, -1e-45), (3.4e38, 1)]),
        ("sigmoid", [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (3.4e38, 1), (-3.4e38, 0)]),
    ]
)
def test_values_at_the_ends(name: str, values: list[tuple[float, float]]) -> None:
    """Bit for bit, the signs of zeros too; every NaN becomes the quiet one without a payload."""
    x, expected = np.array(values, np.float32).T
    np.testing.assert_array_equal(getattr(MACHINE, name)(x).view(np.uint32), expected.copy().view(np.uint32))
    nan = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    np.testing.assert_array_equal(getattr(MACHINE, name)(nan).view(np.uint32), np.full(4, 0x7FC00000, np.uint32))


@each(NAMES)
def test_an_element_s_bits_depend_on_it_alone(name: str) -> None:
    """In another shape, order or chunk; the argument stays as it is."""
    x = np.random.default_rng(0).uniform(-5, 20, (40, 1001)).astype(np.float32)
    kept, function = x.copy(), getattr(MACHINE, name)
    whole = function(x)
    np.testing.assert_array_equal(function(x.T).T, whole)
    np.testing.assert_array_equal(function(x[7:9, 3:50:2]), whole[7:9, 3:50:2])
    np.testing.assert_array_equal(function(x[3, 5]), whole[3, 5])
    np.testing.assert_array_equal(function(np.append(x, np.float32(3e38)))[:-1], whole.ravel())  # an exponent that isn't small
    assert function(x[:0]).shape == (0, 1001)
    np.testing.assert_array_equal(x, kept)


@each(NAMES)
def test_the_host_s_functions_are_near(name: str) -> None:
    x = np.linspace(-20, 20, 1001, dtype=np.float32)
    np.testing.assert_allclose(getattr(NUMPY, name)(x), in_float64(name, x), rtol=2e-6)
