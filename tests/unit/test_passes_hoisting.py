"""Activations move from behind a max_pool to the product before it."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_close, assert_equal, body, check, graph_of, lines, ran
from tpucc.ir import Graph
from tpucc.ops import OPS
from tpucc.ops.opdef import Clamp, Example, OpDef, Table
from tpucc.passes.biases import hoist_activations
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias

HEAD = """
    x = input : f32[1, 4, 5, 1]
    k = constant(value=f32[1, 2, 1, 2]{1, 2, 3, 4}) : f32[1, 2, 1, 2]
    b = constant(value=f32[2]{1, 2}) : f32[2]
    c = conv2d(x, k, padding="same") : f32[1, 4, 5, 2]
"""
STAY: dict[str, dict[str, float]] = {
    "gelu": {},
    "silu": {},
    "hard_swish": {},
    "leaky_relu": {"alpha": -0.5},
    "elu": {"alpha": -1.0},
    "softmax": {},
    "abs": {},
    "log": {},
    "sqrt": {},
}
MOVE: dict[str, dict[str, float]] = {
    "relu": {},
    "relu6": {},
    "sigmoid": {},
    "tanh": {},
    "hard_sigmoid": {},
    "leaky_relu": {"alpha": 0.3},
    "elu": {"alpha": 0.5},
    "clip": {"low": -0.5, "high": 0.5},
    "exp": {},
    "sign": {},
}


def pooled(activation: str, attributes: dict[str, float], *, bias: bool = True, pool: str = "max_pool") -> Graph:
    """A convolution of ragged shape, a pool of overlapping windows, an activation."""
    random = np.random.default_rng(4)
    model = Model()
    h = model.op("conv2d", model.input("x", 2, 7, 6, 3), model.constant("k", random.standard_normal((3, 2, 3, 5))), padding="same")
    h = model.op("add", h, model.constant("b", random.standard_normal(5))) if bias else h
    h = model.op(pool, h, name="p", size=(3, 2), stride=2, padding="same")
    return model.build(model.op(activation, h, name="y", **attributes))


def test_an_activation_moves_before_the_pool() -> None:
    text = f"""{HEAD}a = add(c, b) : f32[1, 4, 5, 2]
        p = max_pool(a) : f32[1, 2, 2, 2]
        y = leaky_relu(p, alpha=0.5) : f32[1, 2, 2, 2] in [0.0, 9.0]
        return y"""
    assert ran(hoist_activations, text) == lines("""
        x = input : f32[1, 4, 5, 1]
        k = constant(value=f32[1, 2, 1, 2]{1.0, 2.0, 3.0, 4.0}) : f32[1, 2, 1, 2]
        b = constant(value=f32[2]{1.0, 2.0}) : f32[2]
        c = conv2d(x, k, padding="same") : f32[1, 4, 5, 2]
        a = add(c, b) : f32[1, 4, 5, 2]
        y.1 = leaky_relu(a, alpha=0.5) : f32[1, 4, 5, 2]
        y = max_pool(y.1) : f32[1, 2, 2, 2] in [0.0, 9.0]
        return y as "y"
        """)


@each(product(MOVE, [False, True]))
def test_functions_that_never_fall_fuse_with_the_convolution(activation: str, bias: bool) -> None:
    graph = pooled(activation, MOVE[activation], bias=bias)
    result = hoist_activations.run(graph, CONTEXT)
    check(result)
    assert_close(graph, result)
    if activation in ("relu", "relu6", "hard_sigmoid", "clip", "sign"):
        assert_equal(graph, result)
    fused = fuse_activation.run(fuse_bias.run(result, CONTEXT), CONTEXT)
    assert [node.op for node in fused if node.op not in ("input", "constant")] == ["convolution", "max_pool"]


@each(list(STAY))
def test_functions_that_fall_stay(activation: str) -> None:
    graph = pooled(activation, STAY[activation])
    assert hoist_activations.run(graph, CONTEXT) == graph


FUNCTIONS = {name: op for name, op in OPS.items() if isinstance(op.legalisation, Table | Clamp)}


@each({f"{name}: {case.title}": (op, case) for name, op in FUNCTIONS.items() for case in op.examples})
def test_any_function_moves_unless_it_falls_somewhere(op: OpDef[Any], case: Example[Any]) -> None:
    values = np.linspace(-20, 20, 4001, dtype=np.float32)
    with np.errstate(all="ignore"):
        results = op.reference(case.attributes, [values])
    rises = bool((np.diff(results) >= -1e-5).all())  # not so where it is NaN
    attributes = {field.name: getattr(case.attributes, field.name) for field in fields(case.attributes)}
    graph = pooled(op.name, attributes)
    assert (hoist_activations.run(graph, CONTEXT) != graph) == rises


def test_an_average_is_no_maximum() -> None:
    graph = pooled("relu", {}, pool="avg_pool")
    assert hoist_activations.run(graph, CONTEXT) == graph


@each(
    [
        "p = max_pool(c) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y, p",
        "p = max_pool(c) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y, c",
        "p = max_pool(c) : f32[1, 2, 2, 2] scale 0.5 zero 0\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y",
        "t = tanh(c) : f32[1, 4, 5, 2]\np = max_pool(t) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y",
        "a = add(c, x) : f32[1, 4, 5, 2]\np = max_pool(a) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y",
        "p = max_pool(x) : f32[1, 2, 2, 1]\ny = relu(p) : f32[1, 2, 2, 1]\nreturn y, c",
        "y = relu(c) : f32[1, 4, 5, 2]\nreturn y",
    ]
)
def test_activations_that_stay(rest: str) -> None:
    graph = graph_of(HEAD + rest)
    assert hoist_activations.run(graph, CONTEXT) == graph


def test_a_result_with_fixed_quantisation_keeps_it() -> None:
    text = f"{HEAD}p = max_pool(c) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2] scale 0.5 zero 0\nreturn y"
    assert "y.1 = relu(c) : f32[1, 4, 5, 2]\ny = max_pool(y.1) : f32[1, 2, 2, 2] scale 0.5 zero 0" in ran(hoist_activations, text)


def test_origins() -> None:
    graph = graph_of(f"{HEAD}p = max_pool(c) : f32[1, 2, 2, 2]\ny = relu(p) : f32[1, 2, 2, 2]\nreturn y")
    result = hoist_activations.run(graph, CONTEXT)
    assert result["y"].origin == graph["p"].origin
    assert result["y.1"].origin == graph["y"].origin


@pytest.mark.long
def test_large_graphs_take_time_in_proportion() -> None:
    text = ["n0 = input : f32[1, 2, 1, 1]", "k = constant(value=f32[1, 1, 1, 1]{1}) : f32[1, 1, 1, 1]"]
    for i in range(1_000):
        text.append(f"c{i} = conv2d(n{i}, k) : f32[1, 2, 1, 1]")
        text.append(f"p{i} = max_pool(c{i}, size=(2, 1), stride=1, padding=(1, 0, 0, 0)) : f32[1, 2, 1, 1]")
        text.append(f"n{i + 1} = relu(p{i}) : f32[1, 2, 1, 1]")
    graph = graph_of("\n".join([*text, "return n1000"]))
    result = hoist_activations.run(graph, CONTEXT)
    assert [node.op for node in result][2:5] == ["conv2d", "relu", "max_pool"]
    assert body(result).count("relu(c") == 1_000
