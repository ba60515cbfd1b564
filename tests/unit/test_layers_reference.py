"""The integer reference of each layer against loops over Python's integers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import Device
from tests.support.operator_graphs import value_of
from tpucc.diagnostics import Origin, Span
from tpucc.ir import Attributes, NoAttributes, Node, Quantisation, TensorType
from tpucc.ir.dtypes import I8
from tpucc.layers.kinds import (
    FUNCTIONS_OF_TWO,
    LAYERS,
    Conv,
    Fc,
    Move,
    OfTwo,
    Pool,
    Requantise,
    Vector,
    VectorFunction,
    is_layer,
    macs,
    weight_shape,
)
from tpucc.layers.reference import LAYER_REFERENCES, compute
from tpucc.layers.verify import conv_shape, pool_shape
from tpucc.numerics import AnyArray

ORIGIN = Origin((Span(1, 1, 1, 2),))


def node(attributes: Attributes, *shape: int, op: str = "vector") -> Node:
    return Node("layer", op, (), attributes, TensorType("i8", shape, None, Quantisation(1.0, 0)), ORIGIN)


def clamped(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


def rounded(value: np.float32) -> int:
    return round(Fraction(float(value)))


def slow_fc(layer: Fc, x: AnyArray, weights: AnyArray, bias: AnyArray, factors: AnyArray, table: AnyArray | None) -> AnyArray:
    rows = x.reshape(-1, x.shape[-1])
    result = np.empty((len(rows), weights.shape[1]), np.int8)
    for r, row in enumerate(rows.tolist()):
        for n in range(weights.shape[1]):
            total = int(bias[n]) + sum(a * int(w) for a, w in zip(row, weights[:, n].tolist(), strict=True))
            value = clamped(rounded(np.float32(total) * factors[n]) + layer.epilogue.zero, *layer.epilogue.bounds(I8))
            result[r, n] = value if table is None else table[value + 128]
    return result.reshape(*x.shape[:-1], weights.shape[1])


PRODUCTS = [((5,), 13, 7), ((), 4, 3), ((2, 3), 1, 5), ((1,), 257, 1), ((3, 1, 2), 31, 2)]


@each([(*sizes, table) for sizes in PRODUCTS for table in (False, True)])
def test_fc_is_what_loops_compute(leading: tuple[int, ...], k: int, n: int, table: bool) -> None:
    generator = np.random.default_rng(k * n)
    x, weights = generator.integers(-128, 128, (*leading, k)).astype(np.int8), generator.integers(-127, 128, (k, n)).astype(np.int8)
    bias = generator.integers(-(10**6), 10**6, n).astype(np.int32)
    factors = generator.uniform(1e-5, 1e-3, n).astype(np.float32)
    entries = generator.integers(-128, 128, 256).astype(np.int8) if table else None
    layer = Fc(Requantise(-9, -120, 101, table))
    operands = [x, weights, bias, factors, *([entries] if entries is not None else [])]
    found = compute(node(layer, *leading, n, op="fc"), operands)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, slow_fc(layer, x, weights, bias, factors, entries))


def test_fc_rounds_ties_to_even() -> None:
    x, weights = np.array([[1], [3], [5], [-1], [-3]], np.int8), np.array([[1]], np.int8)
    result = compute(node(Fc(Requantise()), 5, 1, op="fc"), [x, weights, np.zeros(1, np.int32), np.full(1, 0.5, np.float32)])
    assert result[:, 0].tolist() == [0, 2, 2, 0, -2]


def test_fc_is_exact_past_the_mantissa_of_float32() -> None:
    """2,000 products of 127 · 127 are 32,258,000, to which float32 can't add 1."""
    x, weights = np.full((1, 2001), 127, np.int8), np.full((2001, 1), 127, np.int8)
    x[0, -1], weights[-1, 0] = 1, 1
    bias = np.array([-2000 * 127 * 127], np.int32)
    assert compute(node(Fc(Requantise()), 1, 1, op="fc"), [x, weights, bias, np.ones(1, np.float32)])[0, 0] == 1


def test_fc_refuses_to_overflow() -> None:
    x, weights = np.full((1, 3), 127, np.int8), np.full((3, 1), 127, np.int8)
    bias = np.array([2**31 - 1], np.int32)
    with pytest.raises(OverflowError):
        compute(node(Fc(Requantise()), 1, 1, op="fc"), [x, weights, bias, np.ones(1, np.float32)])


@each(FUNCTIONS_OF_TWO.items())
def test_functions_of_two_values_let_scales_pass(name: VectorFunction, function: OfTwo) -> None:
    """Layers scale before they compute. Powers of two, so that nothing rounds."""
    a, b = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    assert (function.real(4 * a, b if function.one_scale else 4 * b) == 4 * function.real(a, b)).all()


SHAPES = [((4, 5), (4, 5)), ((4, 5), (5,)), ((5,), (4, 5)), ((4, 1), (1, 5)), ((), (3,)), ((2, 3, 1), (3, 4)), ((1,), (2, 1, 3))]


@each([(function, *shapes) for shapes in SHAPES for function in ("add", "subtract", "multiply")])
def test_vector_is_what_loops_compute(function: str, a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(len(a_shape) * 7 + len(b_shape))
    a, b = (generator.integers(-128, 128, shape).astype(np.int8) for shape in (a_shape, b_shape))
    entries = generator.integers(-128, 128, 256).astype(np.int8)
    scales = (0.013,) if function == "multiply" else (0.3, 0.11)
    layer = Vector(function, Requantise(2, -99, 100, True, scales, (5, -7)))
    left, right = np.broadcast_arrays(a, b)
    expected = np.empty(left.shape, np.int8)
    for place in np.ndindex(left.shape):
        p, q = np.float32(int(left[place]) - 5), np.float32(int(right[place]) + 7)
        scale_a, scale_b = np.float32(scales[0]), np.float32(scales[-1])
        real = {"add": scale_a * p + scale_b * q, "subtract": scale_a * p - scale_b * q, "multiply": scale_a * (p * q)}[function]
        expected[place] = entries[clamped(rounded(real) + 2, -99, 100) + 128]
    found = compute(node(layer, *left.shape), [a, b, entries])
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, expected)


def test_tables_look_up_and_nothing_else() -> None:
    entries = np.roll(np.arange(-128, 128), 3).astype(np.int8)
    values = np.array([[-128, -127, 0], [1, 126, 127]], np.int8)
    assert compute(node(Vector("table"), 2, 3), [values, entries]).tolist() == [[125, 126, -3], [-2, 123, 124]]


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(TypeError, match="isn't a layer"):
        compute(node(NoAttributes(), 1, op="softmax"), [np.zeros(1, np.int8)])
    with pytest.raises(ValueError, match="divide"):
        VectorFunction("divide")


def test_every_layer_has_a_reference() -> None:
    assert set(LAYER_REFERENCES) == set(LAYERS) == {"fc", "conv", "pool", "vector", "move"}


def test_sizes_of_layers() -> None:
    device = Device()
    h = device.fc("h", device.input("x", 2, 3, 5), 7)
    y = device.look_up("y", h)
    graph = device.build(y)
    assert (weight_shape(graph["h"], graph), macs(graph["h"], graph)) == ((5, 7), 2 * 3 * 5 * 7)
    assert (weight_shape(graph["y"], graph), macs(graph["y"], graph)) == ((0, 0), 0)
    assert [is_layer(graph[name]) for name in ("x", "h", "y", "h.w")] == [False, True, True, False]


def test_sizes_of_convolutions_pools_and_joins() -> None:
    device = Device()
    h = device.conv("h", device.input("x", 2, 5, 6, 3), (3, 2), 7, stride=(2, 1), sides=(1, 1, 0, 1))
    y = device.pool("y", "max", h, (2, 2))
    joined = device.concat("j", 0, device.fc_sum("s", [y, y], 4), device.fc("t", y, 4))
    graph = device.build(joined)
    assert (weight_shape(graph["h"], graph), macs(graph["h"], graph)) == ((18, 7), 2 * 3 * 6 * 7 * 18)
    assert (weight_shape(graph["s"], graph), macs(graph["s"], graph)) == ((14, 4), 2 * 2 * 5 * 4 * 14)
    for name in ("y", "j"):
        assert (weight_shape(graph[name], graph), macs(graph[name], graph), is_layer(graph[name])) == ((0, 0), 0, True)


def test_a_sum_of_products_is_a_product_of_joined_operands() -> None:
    device = Device()
    graph = device.build(device.fc_sum("y", [device.input("a", 5, 3), device.input("b", 5, 4)], 6))
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-128, 128, (5, columns)).astype(np.int8) for columns in (3, 4))
    w, v, bias, factors = (value_of(graph, f"y.{part}") for part in ("w0", "w1", "b", "m"))
    joined = slow_fc(Fc(Requantise(-5)), np.concatenate([a, b], axis=1), np.concatenate([w, v]), bias, factors, None)
    np.testing.assert_array_equal(compute(graph["y"], [a, b, w, v, bias, factors]), joined)


def test_a_convolution_of_one_pixel_is_fully_connected_and_one_of_the_image_s_size_a_product() -> None:
    generator = np.random.default_rng(5)
    x = generator.integers(-128, 128, (2, 3, 4, 5)).astype(np.int8)
    bias, factors = generator.integers(-999, 999, 6).astype(np.int32), generator.uniform(1e-4, 1e-3, 6).astype(np.float32)
    conv, fc = Conv((1, 1), (0, 0, 0, 0), 0, Requantise(3, low=-50)), Fc(Requantise(3, low=-50))
    small, large = (generator.integers(-127, 128, shape).astype(np.int8) for shape in ((1, 1, 5, 6), (3, 4, 5, 6)))
    found = compute(node(conv, 2, 3, 4, 6, op="conv"), [x, small, bias, factors])
    np.testing.assert_array_equal(found, slow_fc(fc, x, small[0, 0], bias, factors, None))
    found = compute(node(conv, 2, 1, 1, 6, op="conv"), [x, large, bias, factors])
    np.testing.assert_array_equal(found[:, 0, 0], slow_fc(fc, x.reshape(2, 60), large.reshape(60, 6), bias, factors, None))


@each([(1, 4, (2, 3)), (5, 1, (1, 1)), (2, 3, (3, 1))])
def test_dilation_and_groups_are_zeros_in_the_kernel(groups: int, depth: int, dilation: tuple[int, int]) -> None:
    generator = np.random.default_rng(6)
    x = generator.integers(-128, 128, (2, 8, 9, groups * depth)).astype(np.int8)
    weights = generator.integers(-127, 128, (2, 3, depth, 2 * groups)).astype(np.int8)
    zeros = np.zeros((dilation[0] + 1, 2 * dilation[1] + 1, groups * depth, 2 * groups), np.int8)
    for group in range(groups):
        channels, filters = slice(group * depth, (group + 1) * depth), slice(2 * group, 2 * group + 2)
        zeros[:: dilation[0], :: dilation[1], channels, filters] = weights[..., filters]
    bias, factors = np.arange(2 * groups, dtype=np.int32) * 99, np.full(2 * groups, 1e-3, np.float32)
    plain = Conv((2, 1), (1, 2, 0, 1), 5, Requantise(3))
    height, width = (8 + 3 - len(zeros)) // 2 + 1, 9 + 1 - zeros.shape[1] + 1
    wanted = compute(node(plain, 2, height, width, 2 * groups, op="conv"), [x, zeros, bias, factors])
    layer = replace(plain, dilation=dilation, groups=groups)
    np.testing.assert_array_equal(compute(node(layer, *wanted.shape, op="conv"), [x, weights, bias, factors]), wanted)
    assert conv_shape(layer, x.shape, weights.shape) == conv_shape(plain, x.shape, zeros.shape) == wanted.shape
    assert conv_shape(replace(layer, groups=groups + 1), x.shape, weights.shape) is None
    assert conv_shape(replace(layer, dilation=(0, 1)), x.shape, weights.shape) is None


def test_a_convolution_refuses_to_overflow() -> None:
    x, weights = np.full((1, 2, 2, 1), -128, np.int8), np.full((2, 2, 1, 1), -127, np.int8)
    layer, factors = Conv((1, 1), (0, 0, 0, 0), 0, Requantise()), np.ones(1, np.float32)
    just = np.array([2**31 - 1 - 4 * 128 * 127], np.int32)
    assert compute(node(layer, 1, 1, 1, 1, op="conv"), [x, weights, just, factors]).item() == 127
    with pytest.raises(OverflowError):
        compute(node(layer, 1, 1, 1, 1, op="conv"), [x, weights, just + np.int32(1), factors])


def test_pixels_outside_win_no_maximum_and_count_in_no_mean() -> None:
    x = np.array([[-100, -90], [-80, -70]], np.int8).reshape(1, 2, 2, 1)
    windows = ((2, 2), (1, 1), (1, 1, 1, 1))
    largest = compute(node(Pool("max", *windows), 1, 3, 3, 1, op="pool"), [x])
    assert largest[0, :, :, 0].tolist() == [[-100, -90, -90], [-80, -70, -70], [-80, -70, -70]]
    mean = compute(node(Pool("average", *windows, Requantise(-100, scales=(1.0,), zeros=(-100,))), 1, 3, 3, 1, op="pool"), [x])
    assert mean[0, :, :, 0].tolist() == [[-100, -95, -90], [-90, -85, -80], [-80, -75, -70]]
    counted = compute(node(Pool("average", *windows, Requantise(0, scales=(1.0,), zeros=(0,)), (1, 0, 1, 0)), 1, 3, 3, 1, op="pool"), [x])
    assert counted[0, :, :, 0].tolist() == [[-25, -48, -45], [-45, -85, -80], [-40, -75, -70]]  # 190 / 4 is rounded to even
    assert pool_shape(Pool("average", *windows, None, (2, 0, 0, 0)), x.shape) is None
    halves = compute(node(Pool("average", *windows, Requantise(7, scales=(0.5,), zeros=(-100,))), 1, 3, 3, 1, op="pool"), [x])
    assert halves[0, :, :, 0].tolist() == [[7, 9, 12], [12, 15, 17], [17, 19, 22]]


def test_moves_copy_values() -> None:
    a, b = np.arange(6, dtype=np.int8).reshape(2, 3), np.arange(6, 9, dtype=np.int8).reshape(1, 3)
    assert compute(node(Move("concat", 0), 3, 3, op="move"), [a, b]).tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    padded = compute(node(Move("pad", pads=((1, 2), (0, 0)), value=-9), 4, 3, op="move"), [b])
    assert padded.tolist() == [[-9] * 3, [6, 7, 8], [-9] * 3, [-9] * 3]
