"""Batch normalisation becomes a multiplication and an addition, and folds into the convolution before it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model, value_of
from tests.support.rewrites import CONTEXT, assert_close, body, check, graph_of, lines, ran, results
from tpucc.ir import Graph
from tpucc.passes.batch_norm import decompose_batch_norm
from tpucc.passes.folding import fold_scales
from tpucc.runtime.check import compare_with_reference, float_reference, random_inputs

PARAMETERS = """
    x = input : f32[3, 2]
    g = constant(value=f32[2]{6, 2}) : f32[2]
    b = constant(value=f32[2]{1, -1}) : f32[2]
    m = constant(value=f32[2]{0.5, 4}) : f32[2]
    v = constant(value=f32[2]{8.5, 3.5}) : f32[2]
"""


def test_statistics_of_the_batch_itself() -> None:
    """The host computes them: the device has the products before and after."""
    exe = tpucc.compile_source("""
weights random(seed=1)
model m(x: f32[6, 5, 3]):
    weight w: f32[3, 4]
    weight gamma: f32[4]
    weight beta: f32[4]
    h = x @ w
    m = mean(h, (0, 1))
    y = batch_norm(h, gamma, beta, m, mean((h - m) * (h - m), (0, 1)))
    return y @ ones([4, 2])
""")
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, 2)
    assert not any(c.unequal for c in compare_with_reference(exe.runtime, exe.compilation.layers, inputs))
    exact = float_reference(exe.compilation.graph, inputs)["out"]
    np.testing.assert_allclose(exe.run(inputs)["out"], exact, atol=0.3)


def test_constant_parameters_become_a_scale_and_an_offset() -> None:
    """sqrt(8.5 + 0.5) is 3 and sqrt(3.5 + 0.5) is 2: the scales are 6/3 and 2/2, the offsets 1 - 0.5·2 and -1 - 4·1."""
    text = f"{PARAMETERS}y = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2] in [-1.0, 1.0]\nreturn y"
    assert ran(decompose_batch_norm, text) == lines("""
        x = input : f32[3, 2]
        y.scale.1 = constant(value=f32[2]{2.0, 1.0}) : f32[2]
        y.offset.1 = constant(value=f32[2]{0.0, -5.0}) : f32[2]
        y.1 = mul(x, y.scale.1) : f32[3, 2]
        y = add(y.1, y.offset.1) : f32[3, 2] in [-1.0, 1.0]
        return y as "y"
        """)


@each(
    [
        ("m", "y.1 = sub(x, m) : f32[3, 2]\ny.2 = mul(y.1, y.scale.1) : f32[3, 2]\ny = add(y.2, b) : f32[3, 2]"),
        ("b", "y.1 = sub(x, m) : f32[3, 2]\ny.2 = mul(y.1, y.scale.1) : f32[3, 2]\ny = add(y.2, b) : f32[3, 2]"),
        (
            "g",
            "y.1 = sub(x, m) : f32[3, 2]\ny.2 = mul(y.1, y.scale.1) : f32[3, 2]\n"
            "y.3 = mul(y.2, g) : f32[3, 2]\ny = add(y.3, b) : f32[3, 2]",
        ),
        ("v", "y = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2]"),
    ]
)
def test_computed_parameters(computed: str, found: str) -> None:
    text = re.sub(rf"{computed} = constant\(.*?\) :", f"{computed} = input :", PARAMETERS)
    graph = graph_of(f"{text}y = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2]\nreturn y")
    result = decompose_batch_norm.run(graph, CONTEXT)
    check(result)
    assert found in body(result)
    assert body(decompose_batch_norm.run(result, CONTEXT)) == body(result)
    np.testing.assert_allclose(results(result)[0], results(graph)[0], rtol=0, atol=1e-4)


@each([("v", "{-1, 1}"), ("v", "{-0.5, 1}"), ("g", "{-3e38, 1e9}")])
def test_what_is_not_finite_stays(parameter: str, value: str) -> None:
    """The overflow: the offset 1 + 3e38 · 9."""
    changed = {"m": "{-27, 4}", parameter: value}
    text = re.sub(r"(\w) = constant\(value=f32\[2\](\{.*?\})", lambda c: c[0].replace(c[2], changed.get(c[1], c[2])), PARAMETERS)
    graph = graph_of(f"{text}y = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2]\nreturn y")
    assert body(decompose_batch_norm.run(graph, CONTEXT)) == body(graph)


@each([(7,), (5, 7), (2, 3, 5, 7), (1, 1)])
def test_values_of_any_rank(shape: tuple[int, ...]) -> None:
    """Against the formula in float64, which is not how the operator's reference computes it."""
    random = np.random.default_rng(1)
    channels = shape[-1]
    gamma, beta, mean = random.standard_normal((3, channels)).astype(np.float32)
    variance = random.random(channels).astype(np.float32) + np.float32(0.1)
    model = Model()
    names = (model.constant(name, value) for name, value in zip("gbmv", (gamma, beta, mean, variance), strict=True))
    graph = model.build(model.op("batch_norm", model.input("x", *shape), *names, name="y", epsilon=0.01))
    result = decompose_batch_norm.run(graph, CONTEXT)
    check(result)
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + 0.01)
    np.testing.assert_array_equal(value_of(result, "y.scale.1"), scale.astype(np.float32))
    np.testing.assert_array_equal(value_of(result, "y.offset.1"), (beta - mean * scale).astype(np.float32))
    assert_close(graph, result)


def test_shared_parameters_make_one_pair_of_constants() -> None:
    text = f"""{PARAMETERS}a = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2]
        c = batch_norm(a, g, b, m, v, epsilon=0.5) : f32[3, 2]
        d = batch_norm(c, g, b, m, v, epsilon=0.25) : f32[3, 2]
        return d"""
    assert ran(decompose_batch_norm, text).count("constant(") == 4


def test_origins() -> None:
    graph = graph_of(f"{PARAMETERS}y = batch_norm(x, g, b, m, v, epsilon=0.5) : f32[3, 2]\nreturn y")
    result = decompose_batch_norm.run(graph, CONTEXT)
    assert result["y"].origin == graph["y"].origin
    assert result["y.1"].origin == result["y.scale.1"].origin == graph["y"].origin.by("decompose-batch-norm")


def normalised(bias: bool) -> Graph:
    """A convolution of ragged shape, with or without a bias, its batch normalisation, and ReLU."""
    random = np.random.default_rng(2)
    model = Model()
    x = model.input("x", 2, 7, 6, 3)
    h = model.op("conv2d", x, model.constant("k", random.standard_normal((3, 2, 3, 5))), name="c", stride=(2, 1), padding="same")
    if bias:
        h = model.op("add", h, model.constant("bias", random.standard_normal(5)), name="a")
    parameters = [model.constant(name, random.standard_normal(5)) for name in "gbm"]
    h = model.op("batch_norm", h, *parameters, model.constant("v", random.random(5) + 0.1), name="n")
    return model.build(model.op("relu", h, name="y"))


@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_folds_into_the_convolution_before_it(bias: bool) -> None:
    graph = normalised(bias)
    result = fold_scales.run(decompose_batch_norm.run(graph, CONTEXT), CONTEXT)
    check(result)
    assert sorted(node.op for node in result) == ["add", "constant", "constant", "conv2d", "input", "relu"]
    assert_close(graph, result)


@pytest.mark.long
def test_large_graphs_take_time_in_proportion() -> None:
    steps = [f"n{i + 1} = batch_norm({f'n{i}' if i else 'x'}, g, b, m, v, epsilon=0.5) : f32[3, 2]" for i in range(2_500)]
    graph = graph_of("\n".join([PARAMETERS, *steps, "return n2500"]))
    result = decompose_batch_norm.run(graph, CONTEXT)
    assert len(result) == 5_003
