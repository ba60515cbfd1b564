"""From operators to layers: convolutions, pools, values in other places, arithmetic with an activation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model, applied, layers_of, outputs_of, value_of
from tpucc.ir import Graph, Node, Quantisation
from tpucc.layers.kinds import Conv, Fc, Move, Pool, Vector, is_layer, looks_up
from tpucc.numerics import AnyArray
from tpucc.passes.fuse_activation import fuse_activation

IMAGE = (2, 6, 5, 3)


def drawn(*shape: int, seed: int = 0) -> AnyArray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def on_device(*shape: int) -> tuple[Model, str]:
    """A model and a value that the device has computed."""
    model = Model()
    return model, model.op("tanh", model.input("x", *shape), name="first")


def followed(model: Model, name: str) -> Graph:
    """The graph with a function of the device after the value, which keeps what moves it there too."""
    return model.build(model.op("sigmoid", name, name="after"))


def quantised(graph: Graph, inputs: dict[str, AnyArray], steps: float = 1.0, *, fused: bool = False) -> Graph:
    """The layer graph; its outputs are at most `steps` of their own scales away from the float ones."""
    layers = layers_of(graph, inputs, fused=fused)
    for output, exact, found in zip(layers.outputs, outputs_of(graph, inputs), outputs_of(layers, inputs), strict=True):
        assert np.abs(exact - found).max() <= steps * held(layers[layers[output.node].operands[0]]).scale
    return layers


def held(node: Node) -> Quantisation:
    assert node.type.quantisation is not None
    return node.type.quantisation


def made(layers: Graph) -> list[str]:
    """The layers, and the views between them."""
    return [node.op for node in layers if is_layer(node) or node.op in ("slice", "transpose", "reshape")]


@pytest.mark.parametrize("activation", ["", "relu", "tanh"])
@pytest.mark.parametrize(("stride", "padding"), [(1, "valid"), ((2, 1), "same"), (2, 1), (1, (2, 0, 1, 3))])
def test_convolutions(activation: str, stride: Any, padding: Any) -> None:
    model = Model()
    kernel, bias = drawn(3, 2, 3, 4) / 4, drawn(4, seed=1)
    h = model.op("conv2d", model.input("x", *IMAGE), model.constant("c1.k", kernel), name="h", stride=stride, padding=padding)
    h = model.op("add", h, model.constant("c1.b", bias), name="sum")
    graph = model.build(model.op(activation, h, name="y") if activation else h)
    layers = quantised(graph, {"x": drawn(*IMAGE, seed=2)}, 6, fused=True)
    (conv,) = [node for node in layers if is_layer(node)]
    attributes = conv.attributes
    assert isinstance(attributes, Conv)
    assert (conv.name, conv.op) == ("c1", "conv")
    assert attributes.outside == held(layers[conv.operands[0]]).zero_point
    assert attributes.epilogue.table == (activation == "tanh")
    weights = value_of(layers, conv.operands[1])
    assert weights.shape == kernel.shape
    assert np.abs(weights).reshape(-1, 4).max(axis=0).tolist() == [127] * 4


def test_a_kernel_has_a_scale_for_each_filter_or_one_for_all() -> None:
    model = Model()
    kernel = drawn(3, 3, 3, 4) * np.float32([1, 2, 4, 8])
    model.op("conv2d", model.input("x", *IMAGE), model.constant("k", kernel), name="y")
    graph, inputs = model.build("y"), {"x": drawn(*IMAGE)}
    found = [layers_of(graph, inputs, granularity=granularity) for granularity in ("per_channel", "per_tensor")]
    multipliers = [value_of(layers, next(node for node in layers if is_layer(node)).operands[3]) for layers in found]
    np.testing.assert_array_equal(np.unique(multipliers[1]).shape, (1,))
    np.testing.assert_array_equal(np.unique(multipliers[0]).shape, (4,))


@each(product([2, 3, (3, 2)], [0, 1]))
def test_pools(size: Any, padding: int) -> None:
    model, x = on_device(*IMAGE)
    largest = model.op("max_pool", x, size=size, padding=padding, name="largest")
    mean = model.op("avg_pool", x, size=size, padding=padding, name="mean")
    layers = quantised(model.build(largest, mean), {"x": drawn(*IMAGE)}, 2)
    assert held(layers["largest"]) == held(layers["first"])
    for name, function in (("largest", "max"), ("mean", "average")):
        attributes = layers[name].attributes
        assert isinstance(attributes, Pool)
        assert (attributes.function, attributes.sides) == (function, (padding,) * 4)


def test_a_global_mean_is_a_pool_of_the_image_without_its_axes() -> None:
    model, x = on_device(*IMAGE)
    layers = quantised(followed(model, model.op("global_avg_pool", x, name="mean")), {"x": drawn(*IMAGE)}, 4)
    assert made(layers) == ["vector", "pool", "reshape", "vector"]
    pool = next(node for node in layers if node.op == "pool")
    assert isinstance(pool.attributes, Pool)
    assert (pool.type.shape, pool.attributes.size) == ((2, 1, 1, 3), (6, 5))


@each(
    [
        ("slice", {"starts": (0, 1, 0), "stops": (2, 3, 7)}, ["slice"]),
        ("slice", {"starts": (0, 1, 2), "stops": (2, 3, 5)}, ["slice", "fc"]),
        ("slice", {"starts": (0, 0, 6), "stops": (2, 4, 7)}, ["fc"]),
        ("slice", {"starts": (0, 1, 0), "stops": (2, 2, 7), "squeeze": (1,)}, ["slice", "reshape"]),
        ("slice", {"starts": (0, 0, 0), "stops": (2, 4, 7), "steps": (1, 2, 1)}, ["slice"]),
        ("slice", {"starts": (0, 0, 6), "stops": (2, 4, -1), "steps": (1, 1, -2)}, ["fc"]),
        ("slice", {"starts": (0, 0, 6), "stops": (2, 4, -1), "steps": (1, 3, -1)}, ["slice", "fc"]),
        ("transpose", {"perm": (1, 0, 2)}, ["transpose"]),
        ("pad", {"pads": ((0, 0), (1, 2), (0, 0))}, ["move"]),
        ("pad", {"pads": ((0, 0), (0, 0), (2, 1))}, ["fc"]),
        ("pad", {"pads": ((1, 0), (0, 1), (2, 1))}, ["fc", "move"]),
        ("pad", {"pads": ((0, 0), (0, 0), (0, 0))}, []),
    ]
)
def test_values_in_other_places_are_the_same_integers(op: str, attributes: dict[str, Any], kinds: list[str]) -> None:
    model, x = on_device(2, 4, 7)
    graph = followed(model, model.op(op, x, name="moved", **attributes))
    layers = quantised(graph, {"x": drawn(2, 4, 7)}, 2)
    assert made(layers) == ["vector", *kinds, "vector"]


@each([0, 1, -1])
def test_joined_values(axis: int) -> None:
    """Of different scales: rows are requantised before they are joined, lanes while they are."""
    model, x = on_device(2, 4, 7)
    other = model.op("mul", x, model.constant("k", 3.5), name="other")
    joined = model.op("concat", x, other, model.constant("c", drawn(2, 4, 7, seed=3)), axis=axis, name="joined")
    layers = quantised(followed(model, joined), {"x": drawn(2, 4, 7)}, 3)
    last = [node for node in layers if node.op in ("fc", "move")]
    assert len(last) == 1
    if axis == -1:
        assert isinstance(last[0].attributes, Fc)
        assert last[0].attributes.sources == 3
        matrices = [value_of(layers, name) for name in last[0].operands[3:6]]
        np.testing.assert_array_equal(np.concatenate(matrices), np.eye(21))
    else:
        assert isinstance(last[0].attributes, Move)
        assert {held(layers[name]) for name in last[0].operands} == {held(last[0])}


def test_padding_is_zero_whatever_the_zero_point() -> None:
    model = Model()
    x = model.op("relu", model.input("x", 3, 4, range=(-1.0, 7.0)), name="first")
    layers = quantised(followed(model, model.op("pad", x, pads=((1, 0), (0, 0)), name="p")), {"x": drawn(3, 4)}, 2)
    pad = next(node for node in layers if node.op == "move")
    assert isinstance(pad.attributes, Move)
    assert pad.attributes.value == held(pad).zero_point != 0


@each(product(["add", "sub", "mul"], ["relu", "relu6", "tanh"]))
def test_arithmetic_with_an_activation_is_one_layer(of: str, activation: str) -> None:
    model = Model()
    a, b = model.input("a", 3, 5), model.input("b", 3, 5)
    graph = model.build(model.op(activation, model.op(of, a, b, name="two"), name="y"))
    inputs = {"a": drawn(3, 5), "b": drawn(3, 5, seed=1)}
    layers = quantised(graph, inputs, 5, fused=True)
    (layer,) = [node for node in layers if is_layer(node)]
    assert isinstance(layer.attributes, Vector)
    assert layer.attributes.function == {"add": "add", "sub": "subtract", "mul": "multiply"}[of]
    assert looks_up(layer.attributes) == (activation == "tanh")
    assert [node.op for node in applied(graph, fuse_activation, calibration=inputs)] == ["input", "input", "arithmetic"]


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_arithmetic_with_a_number_and_an_activation_is_one_table(activation: str) -> None:
    model = Model()
    shifted = model.op("sub", model.constant("k", 0.5), model.input("a", 3, 5), name="shifted")
    graph = model.build(model.op(activation, shifted, name="y"))
    layers = quantised(graph, {"a": drawn(3, 5)}, 5, fused=True)
    (layer,) = [node for node in layers if is_layer(node)]
    assert isinstance(layer.attributes, Vector)
    assert layer.attributes.function == "table"


SPREAD = [
    (size, window, stride, before, after)
    for size, window, stride in product((1, 2, 3), (1, 2, 3), (1, 2, 3, 4))
    for before, after in product(range((size - 1) * stride + max(window, stride)), repeat=2)
    if before + after < (size - 1) * stride + max(window, stride)
]


@each(sorted(SPREAD, key=lambda case: (hash(case) % 97, case)), usual=30)
def test_a_transposed_convolution_with_any_padding(size: int, window: int, stride: int, before: int, after: int) -> None:
    """Also where a phase of the stride meets no position of the kernel, or no pixel: then it is the bias."""
    model, x, random = Model(), drawn(1, size, 2, 2), np.random.default_rng(size)
    kernel, bias = model.constant("k.w", random.uniform(-1, 1, (window, 1, 2, 3))), model.constant("k.b", [1.0, -2.0, 0.0])
    y = model.op("conv_transpose2d", model.input("x", *x.shape), kernel, stride=(stride, 2), padding=(before, after, 1, 0))
    quantised(model.build(model.op("add", y, bias, name="y")), {"x": x}, 3, fused=True)
