"""Every rule of the arithmetic against slow exact arithmetic on Python's integers, and against ONNX Runtime."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.numerics import (
    EXACT,
    affine_parameters,
    column_bound,
    dequantise,
    multiplier,
    quantise,
    quantise_bias,
    quantise_weights,
    requantise,
    saturate,
    weight_scales,
)

INT32 = np.iinfo(np.int32)


def exactly(value: float | np.floating) -> Fraction:
    return Fraction(float(value))


def half_even(value: Fraction) -> int:
    return round(value)  # Python rounds a Fraction half to even, exactly


def to_float32(value: Fraction) -> Fraction:
    """The nearest float32 number, ties to even; for normal numbers."""
    if value == 0:
        return value
    exponent = math.frexp(float(abs(value)))[1] - 24
    unit = Fraction(2) ** exponent
    if abs(value) / unit >= 2**24 or abs(value) / unit < 2**23:  # frexp saw a rounded neighbour
        exponent += 1 if abs(value) / unit >= 2**24 else -1
        unit = Fraction(2) ** exponent
    return half_even(value / unit) * unit


def clamped(value: int, low: int = -128, high: int = 127) -> int:
    return max(low, min(high, value))


def slow_requantise(accumulator: int, factor: float, zero: int, low: int, high: int) -> int:
    product = to_float32(to_float32(Fraction(accumulator)) * exactly(factor))
    return clamped(half_even(product) + zero, low, high)


def requantise_case(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Accumulators of every magnitude, and multipliers that bring most of them near int8."""
    bits = generator.integers(1, 32, count)
    accumulator = np.clip(generator.integers(-(2**31), 2**31, count) >> (31 - bits), INT32.min, INT32.max).astype(np.int32)
    factors = (generator.uniform(0.3, 3, count) * 2.0 ** (7.0 - bits)).astype(np.float32)
    return accumulator, factors


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_requantise_is_exact_arithmetic(count: int) -> None:
    generator = np.random.default_rng(0)
    accumulator, factors = requantise_case(generator, count)
    powers = (2.0 ** generator.integers(-12, 0, count)).astype(np.float32)
    factors = np.where(generator.random(count) < 0.2, powers, factors)  # powers of two make ties
    found = requantise(accumulator, factors, 7, -100, 120)
    expected = [slow_requantise(int(a), float(m), 7, -100, 120) for a, m in zip(accumulator, factors, strict=True)]
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, expected)


@each(
    [
        (1, 0.5, 0, 0),  # 0.5 to even
        (3, 0.5, 0, 2),  # 1.5 to even
        (-1, 0.5, 0, 0),
        (-3, 0.5, 0, -2),
        (1, 0.5, 1, 1),  # rounded before the zero point is added: not round(1.5)
        (5, 0.5, 3, 5),  # round(2.5) + 3, not round(5.5)
        (2**31 - 1, 1.0, -128, 127),
        (-(2**31), 1.0, 127, -128),
        (-(2**31), 2.0**-24, 0, -128),
        (2**24 + 1, 2.0**-20, 0, 16),  # the accumulator is itself rounded to float32
        (0, 1e30, -5, -5),
    ]
)
def test_requantise_ties_and_extremes(accumulator: int, factor: float, zero: int, expected: int) -> None:
    assert requantise(np.array([accumulator], np.int32), np.float32(factor), zero)[0] == expected


def test_requantise_by_column_over_leading_sizes() -> None:
    accumulator = np.arange(-60, 60, dtype=np.int32).reshape(2, 3, 20)
    factors = np.linspace(0.1, 2, 20).astype(np.float32)
    expected = [
        [[slow_requantise(int(a), float(m), -3, -128, 127) for a, m in zip(row, factors, strict=True)] for row in part]
        for part in accumulator
    ]
    np.testing.assert_array_equal(requantise(accumulator, factors, -3), expected)


@pytest.mark.parametrize("count", [4_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_quantise_is_exact_arithmetic(count: int) -> None:
    generator = np.random.default_rng(1)
    values = np.concatenate([generator.standard_normal(count) * 3, np.arange(-200, 200) * 0.0125, [0.0, -0.0, 1e-40]]).astype(np.float32)
    for scale, zero in ((0.025, 0), (0.1, -128), (1 / 3, 127), (2.0**-7, 5)):
        step = exactly(np.float32(scale))
        expected = [clamped(half_even(to_float32(exactly(x) / step)) + zero) for x in values]
        np.testing.assert_array_equal(quantise(values, scale, zero), expected)


def test_quantise_saturates_where_the_division_overflows() -> None:
    huge = np.array([3e38, -3e38, np.inf, -np.inf], np.float32)
    assert quantise(huge, 1e-30, 3).tolist() == [127, -128, 127, -128]


@each([-128, -7, 0, 127])
def test_dequantise_then_quantise_is_the_identity(zero: int) -> None:
    values = np.arange(-128, 128).astype(np.int8)
    real = dequantise(values, 0.037, zero)
    assert real.dtype == np.float32
    assert [exactly(r) for r in real] == [to_float32((int(q) - zero) * exactly(np.float32(0.037))) for q in values]
    np.testing.assert_array_equal(quantise(real, 0.037, zero), values)


def test_saturate_adds_the_zero_point_exactly_however_large_the_value() -> None:
    rounded = np.array([2.0**31, -(2.0**31), 2.0**24 + 2, 16777217, -131, -130, 100], np.float32)
    assert saturate(rounded, 127, -128, 127).tolist() == [127, -128, 127, 127, -4, -3, 127]
    assert saturate(rounded, 0, -10, 99).tolist() == [99, -10, 99, 99, -10, -10, 99]


@each(
    [
        (0.0, 255.0, (1.0, -128)),
        (-128.0, 127.0, (1.0, 0)),
        (-255.0, 0.0, (1.0, 127)),
        (2.0, 255.0, (1.0, -128)),  # zero is always in the range
        (-255.0, -3.0, (1.0, 127)),
        (0.0, 0.0, (2.0**-24, 0)),
        (0.0, 1e-45, (2.0**-24, 0)),
        (-127.5, 127.5, (1.0, 0)),  # -128 + 127.5 is a tie
    ]
)
def test_affine_parameters(low: float, high: float, expected: tuple[float, int]) -> None:
    assert affine_parameters(low, high) == expected


def test_affine_parameters_cover_zero_and_the_range_within_one_step() -> None:
    generator = np.random.default_rng(2)
    for low, high in np.sort(generator.standard_normal((2_000, 2)) * 10.0 ** generator.integers(-20, 20, (2_000, 1)), axis=1):
        scale, zero = affine_parameters(float(low), float(high))
        ends = [scale * (q - zero) for q in (-128, 127)]
        assert -128 <= zero <= 127
        assert scale == np.float32(scale)
        assert ends[0] <= min(low, 0) + scale
        assert ends[1] >= max(high, 0) - scale


def test_weights_are_symmetric_and_reach_127_in_each_column() -> None:
    weights = np.random.default_rng(3).standard_normal((37, 11)).astype(np.float32) * np.logspace(-6, 6, 11, dtype=np.float32)
    weights[:, 4] = 0
    scales = weight_scales(weights, per_channel=True)
    quantised = quantise_weights(weights, scales)
    assert scales[4] == 1
    assert np.abs(quantised[:, 4]).max() == 0
    assert np.abs(np.delete(quantised, 4, axis=1)).max(axis=0).tolist() == [127] * 10
    assert int(quantised.min()) >= -127
    for row, column in ((0, 0), (5, 10), (36, 7)):
        exact = to_float32(exactly(weights[row, column]) / exactly(scales[column]))
        assert quantised[row, column] == half_even(exact)


def test_weights_per_tensor_share_the_largest_scale() -> None:
    weights = np.array([[1, -20], [3, 127]], np.float32)
    assert weight_scales(weights, per_channel=False).tolist() == [1, 1]
    assert quantise_weights(weights, weight_scales(weights, per_channel=False)).tolist() == [[1, -20], [3, 127]]


def test_scales_of_subnormal_weights_are_normal() -> None:
    assert weight_scales(np.full((3, 2), 1e-44, np.float32), per_channel=True).tolist() == [1, 1]


def test_quantise_bias_folds_the_zero_point_in() -> None:
    weights = np.array([[1, 2], [3, -4], [5, 6]], np.int8)
    found = quantise_bias(np.array([1.0, -2.5], np.float32), np.array([0.5, 0.25], np.float32), 0.5, -10, weights)
    assert found.tolist() == [4 + 10 * 9, -20 + 10 * 4]


def test_quantise_bias_rounds_half_to_even() -> None:
    bias = np.array([0.125, 0.375, -0.125, -0.375], np.float32)
    found = quantise_bias(bias, np.full(4, 0.5, np.float32), 0.5, 0, np.zeros((1, 4), np.int8))
    assert found.tolist() == [0, 2, 0, -2]


def test_multiplier_rounds_each_step_to_float32() -> None:
    generator = np.random.default_rng(4)
    for x, y in generator.uniform(1e-4, 1, (500, 2)).astype(np.float32):
        weights = generator.uniform(1e-4, 1, 3).astype(np.float32)
        expected = [to_float32(to_float32(exactly(x) * exactly(w)) / exactly(y)) for w in weights]
        assert [exactly(m) for m in multiplier(float(x), weights, float(y))] == expected


def test_multiplier_is_never_subnormal() -> None:
    assert multiplier(1e-30, 1e-30, 1.0) == np.finfo(np.float32).tiny
    assert np.isinf(multiplier(1e30, 1e30, 1e-30))


def test_column_bound_bounds_every_partial_sum() -> None:
    generator = np.random.default_rng(5)
    weights = generator.integers(-127, 128, (300, 4)).astype(np.int8)
    bound = column_bound(weights, 128)
    assert bound.tolist() == [sum(abs(int(w)) for w in column) * 128 for column in weights.T]
    assert column_bound(np.full((1033, 1), 127, np.int8), 128) >= EXACT > column_bound(np.full((1032, 1), 127, np.int8), 128)


def qlinear_matmul(
    a: np.ndarray, a_scale: np.float32, a_zero: int, b: np.ndarray, b_scale: np.ndarray, y_scale: np.float32, y_zero: int
) -> np.ndarray:
    onnx = pytest.importorskip("onnx")
    from tests.support.onnxruntime import session as session_of

    helper, kinds, arrays = onnx.helper, onnx.TensorProto, onnx.numpy_helper
    constants = {
        "a_scale": np.array(a_scale, np.float32),
        "a_zero": np.array(a_zero, np.int8),
        "b": b,
        "b_scale": b_scale,
        "b_zero": np.zeros(len(b_scale), np.int8),
        "y_scale": np.array(y_scale, np.float32),
        "y_zero": np.array(y_zero, np.int8),
    }
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", ["a", *constants], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", kinds.INT8, list(a.shape))],
        [helper.make_tensor_value_info("y", kinds.INT8, [a.shape[0], b.shape[1]])],
        [arrays.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    result: np.ndarray = session_of(model).run(None, {"a": a})[0]
    return result


@each(range(20))
def test_products_equal_onnx_runtime(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "1")
    generator = np.random.default_rng(seed)
    m, k, n = (int(size) for size in generator.integers(1, (60, 700, 40)))
    a = generator.integers(-128, 128, (m, k)).astype(np.int8)
    b = generator.integers(-127, 128, (k, n)).astype(np.int8)
    a_zero, y_zero = (int(z) for z in generator.integers(-128, 128, 2))
    a_scale, b_scale = np.float32(generator.uniform(1e-3, 1)), generator.uniform(1e-3, 1, n).astype(np.float32)
    accumulator = (a.astype(np.int64) - a_zero) @ b.astype(np.int64)
    y_scale = np.float32(float(a_scale) * float(b_scale.mean()) * max(1, np.abs(accumulator).max()) / 100)
    if seed % 3 == 0:  # powers of two make ties
        a_scale, b_scale, y_scale = np.float32(0.5), np.full(n, 0.25, np.float32), np.float32(2.0 ** np.round(np.log2(y_scale)))
    expected = qlinear_matmul(a, a_scale, a_zero, b, b_scale, y_scale, y_zero)
    bias = quantise_bias(np.zeros(n, np.float32), b_scale, float(a_scale), a_zero, b)
    sums = (a.astype(np.int64) @ b.astype(np.int64) + bias).astype(np.int32)
    np.testing.assert_array_equal(requantise(sums, multiplier(float(a_scale), b_scale, float(y_scale)), y_zero), expected)
