"""Functions of one and of two values against plain Python, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tpucc.floating.erf import erf
from tpucc.ir import NoAttributes, f32
from tpucc.ops import OPS
from tpucc.ops.elu import EluAttributes
from tpucc.ops.gelu import GeluAttributes
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.opdef import RuleError, Table

NONE = NoAttributes()
POINTS = [-80.0, -20.0, -6.5, -3.0, -2.9999, -1.0, -0.1, -1e-8, 0.0, 1e-8, 0.3, 1.0, 2.9999, 3.0, 5.999, 6.0, 7.5, 30.0, 80.0]


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def relu6(x: float) -> float:
    return min(max(x, 0.0), 6.0)


def tanh_gelu(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


SLOW: list[tuple[str, Any, Callable[[float], float]]] = [
    ("relu", NONE, lambda x: max(x, 0.0)),
    ("relu6", NONE, relu6),
    ("sigmoid", NONE, logistic),
    ("tanh", NONE, math.tanh),
    ("leaky_relu", LeakyReluAttributes(), lambda x: x if x > 0 else 0.01 * x),
    ("leaky_relu", LeakyReluAttributes(2.5), lambda x: x if x > 0 else 2.5 * x),
    ("elu", EluAttributes(), lambda x: x if x > 0 else math.exp(x) - 1),
    ("elu", EluAttributes(0.25), lambda x: x if x > 0 else 0.25 * math.expm1(x)),
    ("gelu", GeluAttributes(), lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2)))),
    ("gelu", GeluAttributes(True), tanh_gelu),
    ("silu", NONE, lambda x: x * logistic(x)),
    ("hard_sigmoid", NONE, lambda x: relu6(x + 3) / 6),
    ("hard_swish", NONE, lambda x: x * relu6(x + 3) / 6),
]


@each(SLOW)
def test_references_against_plain_python(name: str, attributes: Any, slow: Callable[[float], float]) -> None:
    x = np.array(POINTS, np.float32)
    expected = np.array([slow(float(value)) for value in x])
    found = OPS[name].reference(attributes, [x])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6)


@each([case for case in SLOW if case[0] not in ("relu", "relu6")])
def test_tables_against_plain_python(name: str, attributes: Any, slow: Callable[[float], float]) -> None:
    legalisation = OPS[name].legalisation
    assert isinstance(legalisation, Table)
    found = legalisation.function(attributes, np.array(POINTS))
    np.testing.assert_allclose(found, [slow(value) for value in POINTS], rtol=1e-14, atol=1e-15)


def test_erf_in_double_precision() -> None:
    points = [0.0, 1e-300, 1e-8, math.inf, *np.linspace(1e-3, 7, 3001), 2.5, np.nextafter(2.5, 0), np.nextafter(2.5, 3)]
    x = np.array([sign * point for point in points for sign in (1, -1)])
    expected = np.array([math.erf(value) for value in x])
    assert np.abs(erf(x) - expected).max() <= 1e-15
    small = np.abs(x) < 1e-2
    assert np.allclose(erf(x[small]), expected[small], rtol=1e-15, atol=0)
    assert np.array_equal(np.signbit(erf(x)), np.signbit(x))


def test_erf_in_single_precision() -> None:
    x = np.linspace(-7, 7, 2001, dtype=np.float32)
    assert erf(x).dtype == np.float32
    assert np.abs(erf(x) - np.array([math.erf(float(value)) for value in x])).max() < 5e-7


SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)
FUNCTIONS: dict[str, Callable[[float, float], float]] = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}


@given(SHAPES, SHAPES, st.sampled_from(sorted(FUNCTIONS)))
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...], name: str) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(RuleError) as caught:
            OPS[name].infer(NONE, [f32(*a), f32(*b)])
        assert (caught.value.code, caught.value.about) == ("E0302", (0, 1))
    else:
        assert OPS[name].infer(NONE, [f32(*a), f32(*b)]) == f32(*expected)
        _against_loops(name, a, b, expected)


def _against_loops(name: str, a: tuple[int, ...], b: tuple[int, ...], shape: tuple[int, ...]) -> None:
    left, right = (np.arange(math.prod(s), dtype=np.float32).reshape(s) - 3 for s in (a, b))
    found = OPS[name].reference(NONE, [left, right])
    assert found.shape == shape
    assert found.dtype == np.float32
    for place in np.ndindex(shape):
        assert found[place] == FUNCTIONS[name](_element(left, place), _element(right, place))


def _element(x: Any, place: tuple[int, ...]) -> float:
    """The element that stands at `place` of the broadcast: sizes of 1 stay at 0."""
    aligned = place[len(place) - x.ndim :]
    return float(x[tuple(0 if size == 1 else index for size, index in zip(x.shape, aligned, strict=True))])
