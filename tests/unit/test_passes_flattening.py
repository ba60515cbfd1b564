"""A dense layer after a flatten becomes a convolution; views move behind what fuses with a product."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_close, assert_equal, body, check, graph_of, lines, ran
from tpucc.ir import Graph
from tpucc.ops import OPS
from tpucc.ops.opdef import View
from tpucc.passes.biases import sink_views
from tpucc.passes.device_work import needs_host
from tpucc.passes.flatten_to_convolution import flatten_to_convolution
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias

MAP = """
    x = input : f32[2, 1, 3, 1]
    k = constant(value=f32[1, 2, 1, 2]{1, 2, 3, 4}) : f32[1, 2, 1, 2]
    w = constant(value=f32[4, 1]{1, 2, 3, 4}) : f32[4, 1]
    c = conv2d(x, k) : f32[2, 1, 2, 2]
"""


def moving(graph: Graph) -> list[str]:
    """The reshapes that the device can't do as views."""
    return [node.name for node in graph if isinstance(OPS[node.op].legalisation, View) and needs_host(node, graph.operands(node))]


def test_a_product_of_a_flattened_map_is_a_convolution() -> None:
    assert ran(flatten_to_convolution, f"{MAP}f = flatten(c) : f32[2, 4]\ny = matmul(f, w) : f32[2, 1]\nreturn y") == lines("""
        x = input : f32[2, 1, 3, 1]
        k = constant(value=f32[1, 2, 1, 2]{1.0, 2.0, 3.0, 4.0}) : f32[1, 2, 1, 2]
        c = conv2d(x, k) : f32[2, 1, 2, 2]
        w.1 = constant(value=f32[1, 2, 2, 1]{1.0, 2.0, 3.0, 4.0}) : f32[1, 2, 2, 1]
        y.1 = conv2d(c, w.1) : f32[2, 1, 1, 1]
        y = reshape(y.1, shape=(2, 1)) : f32[2, 1]
        return y as "y"
        """)


def test_functions_between_move_to_the_map() -> None:
    """And explicit quantisation; what else reads the flattened function reads the function flattened."""
    text = f"""{MAP}f = reshape(c, shape=(2, -1)) : f32[2, 4]
        r = relu(f) : f32[2, 4] in [0.0, 9.0]
        q = quantize(r, scale=0.5) : i8[2, 4] scale 0.5 zero 0
        d = dequantize(q) : f32[2, 4]
        y = matmul(d, w) : f32[2, 1]
        return y, r"""
    assert ran(flatten_to_convolution, text) == lines("""
        x = input : f32[2, 1, 3, 1]
        k = constant(value=f32[1, 2, 1, 2]{1.0, 2.0, 3.0, 4.0}) : f32[1, 2, 1, 2]
        c = conv2d(x, k) : f32[2, 1, 2, 2]
        r.1 = relu(c) : f32[2, 1, 2, 2] in [0.0, 9.0]
        r = reshape(r.1, shape=(2, 4)) : f32[2, 4] in [0.0, 9.0]
        q.1 = quantize(r.1, scale=0.5) : i8[2, 1, 2, 2] scale 0.5 zero 0
        d.1 = dequantize(q.1) : f32[2, 1, 2, 2]
        w.1 = constant(value=f32[1, 2, 2, 1]{1.0, 2.0, 3.0, 4.0}) : f32[1, 2, 2, 1]
        y.1 = conv2d(d.1, w.1) : f32[2, 1, 1, 1]
        y = reshape(y.1, shape=(2, 1)) : f32[2, 1]
        return y as "y", r as "r"
        """)


def dense_after(shape: tuple[int, ...], *views: tuple[int, ...], units: int = 3) -> Graph:
    """A product [..., 5] of an input, seen in other shapes, times two matrices."""
    random = np.random.default_rng(6)
    model = Model()
    h = model.op("matmul", model.input("x", *shape), model.constant("k", random.standard_normal((shape[-1], 5))), name="m")
    for view in views:
        h = model.op("tanh", model.op("reshape", h, shape=view))
    depth = model.builder.nodes[h].type.columns
    products = [model.op("matmul", h, model.constant(key, random.standard_normal((depth, units)))) for key in "wv"]
    return model.build(*products)


@each(
    [
        ((3, 4, 7, 2), (3, -1), (3, 4, 7, 5)),
        ((3, 7, 2), (3, -1), (3, 1, 7, 5)),
        ((3, 2, 4, 3, 2), (3, -1), (3, 1, 24, 5)),
        ((2, 3, 4, 7, 2), (2, 3, -1), (6, 1, 28, 5)),
        ((6, 2), (2, -1), (2, 1, 3, 5)),
        ((3, 4, 7, 2), (12, -1), (12, 1, 7, 5)),
        ((3, 4, 7, 2), (-1,), (1, 1, 84, 5)),
        ((1, 4, 7, 2), (1, 1, -1), (1, 4, 7, 5)),
    ]
)
def test_maps_of_every_rank(shape: tuple[int, ...], view: tuple[int, ...], image: tuple[int, ...]) -> None:
    graph = dense_after(shape, view)
    result = flatten_to_convolution.run(graph, CONTEXT)
    check(result)
    assert moving(graph)
    assert not moving(result)
    convolutions = [node for node in result if node.op == "conv2d"]
    assert [result[node.operands[0]].type.shape for node in convolutions] == [image] * 2
    assert [result[node.operands[1]].type.shape for node in convolutions] == [(*image[1:], 3)] * 2
    assert_close(graph, result)
    assert body(flatten_to_convolution.run(result, CONTEXT)) == body(result)


@each([((3, 1, 1, 2), [(3, 5)]), ((3, 4, 2), [(12, 5)]), ((3, 4, 2), [(60, 1)]), ((2, 2), [(1, 2, 5)]), ((3, 2, 2), [(5, 6)])])
def test_views_that_stay(shape: tuple[int, ...], views: list[tuple[int, ...]]) -> None:
    graph = dense_after(shape, *views)
    assert flatten_to_convolution.run(graph, CONTEXT) == graph


@each(
    [
        "f = flatten(x) : f32[2, 3]\nv = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]\ny = matmul(f, v) : f32[2, 1]\nreturn y",
        "r = relu(x) : f32[2, 1, 3, 1]\nf = flatten(r) : f32[2, 3]\nv = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]\n"
        "y = matmul(f, v) : f32[2, 1]\nreturn y",
        "s = softmax(c) : f32[2, 1, 2, 2]\nf = flatten(s) : f32[2, 4]\ny = matmul(f, w) : f32[2, 1]\nreturn y",
        "f = flatten(c) : f32[2, 4]\ny = softmax(f) : f32[2, 4]\nreturn y",
        "f = flatten(c) : f32[2, 4]\ny = relu(f) : f32[2, 4]\nreturn y",
        "f = flatten(c) : f32[2, 4] scale 0.5 zero 0\ny = matmul(f, w) : f32[2, 1]\nreturn y",
        "v = input : f32[4, 1]\nf = flatten(c) : f32[2, 4]\ny = matmul(f, v) : f32[2, 1]\nreturn y",
        "b = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]\nf = flatten(c) : f32[2, 4]\ng = add(f, b) : f32[2, 4]\n"
        "y = matmul(g, w) : f32[2, 1]\nreturn y",
    ]
)
def test_products_that_stay(rest: str) -> None:
    graph = graph_of(MAP + rest)
    assert flatten_to_convolution.run(graph, CONTEXT) == graph


def test_only_products_with_constants_change() -> None:
    text = f"""{MAP}v = input : f32[4, 1]
        f = flatten(c) : f32[2, 4]
        y = matmul(f, w) : f32[2, 1]
        z = matmul(f, v) : f32[2, 1]
        return y, z"""
    assert "z = matmul(f, v)" in ran(flatten_to_convolution, text)


def test_shared_weights_make_one_kernel() -> None:
    text = f"""{MAP}f = flatten(c) : f32[2, 4]
        y = matmul(f, w) : f32[2, 1]
        t = tanh(f) : f32[2, 4]
        z = matmul(t, w) : f32[2, 1]
        return y, z"""
    assert ran(flatten_to_convolution, text).count("f32[1, 2, 2, 1]{") == 1


def test_origins() -> None:
    graph = graph_of(f"{MAP}f = flatten(c) : f32[2, 4]\ny = matmul(f, w) : f32[2, 1]\nreturn y")
    result = flatten_to_convolution.run(graph, CONTEXT)
    assert result["y.1"].origin == result["y"].origin == graph["y"].origin
    assert result["w.1"].origin == graph["w"].origin.by("flatten-to-convolution")


def network(depth: int) -> Graph:
    """Convolutions that make four pixels of one, and dense layers that make one of four; all with a bias and ReLU."""
    random = np.random.default_rng(7)
    model = Model()
    h = model.input("x", 3, 1, 1, 2)
    kernel, bias = model.constant("k", random.standard_normal((2, 2, 2, 2))), model.constant("b", random.standard_normal(2))
    weights = model.constant("w", random.standard_normal((8, 2)))
    for _ in range(depth):
        h = model.op("relu", model.op("add", model.op("conv2d", h, kernel, padding=1), bias))
        h = model.op("relu", model.op("add", model.op("matmul", model.op("flatten", h), weights), bias))
        h = model.op("reshape", h, shape=(3, 1, 1, 2))
    return model.build(h)


def test_a_network_fuses_after_its_flatten() -> None:
    random = np.random.default_rng(7)
    model = Model()
    h = model.op("conv2d", model.input("x", 2, 7, 5, 3), model.constant("k", random.standard_normal((2, 3, 3, 4))), padding="same")
    h = model.op("flatten", model.op("max_pool", model.op("relu", h)))
    h = model.dense(h, random.standard_normal((24, 9)), random.standard_normal(9), activation="relu")
    graph = model.build(model.dense(h, random.standard_normal((9, 4)), random.standard_normal(4)))
    result = sink_views.run(flatten_to_convolution.run(graph, CONTEXT), CONTEXT)
    check(result)
    assert_close(graph, result)
    fused = fuse_activation.run(fuse_bias.run(result, CONTEXT), CONTEXT)
    ops = [node.op for node in fused if node.op not in ("constant", "input")]
    assert ops == ["convolution", "max_pool", "convolution", "reshape", "linear"]


PRODUCT = """
    x = input : f32[3, 2]
    w = constant(value=f32[2, 4]{1, 2, 3, 4, 5, 6, 7, 8}) : f32[2, 4]
    b = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]
    c = constant(value=f32[1, 1, 4]{1, 2, 3, 4}) : f32[1, 1, 4]
    p = matmul(x, w) : f32[3, 4]
"""


def test_views_sink_below_biases_and_one_activation() -> None:
    text = f"""{PRODUCT}v = reshape(p, shape=(1, 3, 4)) : f32[1, 3, 4]
        a = sub(v, b) : f32[1, 3, 4]
        d = add(b, a) : f32[1, 3, 4]
        r = leaky_relu(d, alpha=0.5) : f32[1, 3, 4] in [-1.0, 1.0]
        y = tanh(r) : f32[1, 3, 4]
        return y"""
    assert lines("""
        p.1 = sub(p, b) : f32[3, 4]
        p.2 = add(p.1, b) : f32[3, 4]
        r.1 = leaky_relu(p.2, alpha=0.5) : f32[3, 4] in [-1.0, 1.0]
        r = reshape(r.1, shape=(1, 3, 4)) : f32[1, 3, 4] in [-1.0, 1.0]
        y = tanh(r) : f32[1, 3, 4]
        """) in ran(sink_views, text)
    graph = graph_of(text)
    assert_equal(graph, sink_views.run(graph, CONTEXT))


@each(
    [
        "v = flatten(x) : f32[3, 2]\ny = relu(v) : f32[3, 2]\nreturn y, p",
        "v = reshape(p, shape=(6, 2)) : f32[6, 2]\ny = relu(v) : f32[6, 2]\nreturn y",
        "v = flatten(p) : f32[3, 4]\ny = relu(v) : f32[3, 4]\nreturn y, v",
        "v = flatten(p) : f32[3, 4]\ny = relu(v) : f32[3, 4]\nreturn y, p",
        "v = flatten(p) : f32[3, 4]\ny = softmax(v) : f32[3, 4]\nreturn y",
        "v = flatten(p) : f32[3, 4] scale 0.5 zero 0\ny = relu(v) : f32[3, 4]\nreturn y",
        "v = flatten(p) : f32[3, 4]\ny = relu(v) : f32[3, 4] scale 0.5 zero 0\nreturn y",
        "v = flatten(p) : f32[3, 4]\ny = sub(b, v) : f32[3, 4]\nreturn y",
        "v = flatten(p) : f32[3, 4]\ny = add(v, v) : f32[3, 4]\nreturn y",
        "v = flatten(p) : f32[3, 4]\ny = mul(v, b) : f32[3, 4]\nreturn y",
        "v = reshape(p, shape=(1, 3, 4)) : f32[1, 3, 4]\ny = add(v, c) : f32[1, 3, 4]\nreturn y",
        "r = tanh(p) : f32[3, 4]\nv = flatten(r) : f32[3, 4]\ny = relu(v) : f32[3, 4]\nreturn y",
    ]
)
def test_views_above_that_stay(rest: str) -> None:
    graph = graph_of(PRODUCT + rest)
    assert sink_views.run(graph, CONTEXT) == graph


@pytest.mark.long
def test_large_graphs_take_time_in_proportion() -> None:
    """5,000 nodes."""
    graph = network(625)
    result = sink_views.run(flatten_to_convolution.run(graph, CONTEXT), CONTEXT)
    check(result)
    fused = fuse_activation.run(fuse_bias.run(result, CONTEXT), CONTEXT)
    assert [node.op for node in fused].count("convolution") == 1_250
    assert not {"add", "relu", "conv2d"} & {node.op for node in fused}


def test_a_chain_of_maps_and_pixels_computes_the_same() -> None:
    graph = network(3)
    assert_close(graph, sink_views.run(flatten_to_convolution.run(graph, CONTEXT), CONTEXT))
