"""Scales after a product fold into its weights, past the bias too."""

from __future__ import annotations

import numpy as np

from tests.support.cases import each
from tests.support.operator_graphs import Model, value_of
from tests.support.rewrites import CONTEXT, assert_close, body, check, graph_of, lines, ran
from tpucc.passes.dead_code import dead_code
from tpucc.passes.folding import fold_scales

CONVOLUTION = """
    x = input : f32[2, 3, 4, 1]
    k = constant(value=f32[1, 2, 1, 2]{1, 2, 3, 4}) : f32[1, 2, 1, 2]
    b = constant(value=f32[2]{1, 2}) : f32[2]
    s = constant(value=f32[2]{10, 100}) : f32[2]
    h = constant(value=f32[]{0.5}) : f32[]
    r = constant(value=f32[3, 1, 1]{1, 2, 3}) : f32[3, 1, 1]
    c = conv2d(x, k, stride=(1, 3), padding="same") : f32[2, 3, 2, 2]
"""


def folded(rest: str) -> str:
    """What folding makes of the convolution and what follows, without the constants that are left over."""
    text = CONVOLUTION + rest
    ran(fold_scales, text)
    return body(dead_code.run(fold_scales.run(graph_of(text), CONTEXT), CONTEXT))


def test_a_scale_folds_into_the_kernel() -> None:
    assert folded("y = mul(s, c) : f32[2, 3, 2, 2]\nreturn y") == lines("""
        x = input : f32[2, 3, 4, 1]
        k.1 = constant(value=f32[1, 2, 1, 2]{10.0, 200.0, 30.0, 400.0}) : f32[1, 2, 1, 2]
        y = conv2d(x, k.1, stride=(1, 3), padding="same") : f32[2, 3, 2, 2]
        return y as "y"
        """)


@each([("add(c, b)", "{6.0, 102.0}"), ("add(b, c)", "{6.0, 102.0}"), ("sub(c, b)", "{-4.0, -98.0}")])
def test_a_scale_passes_a_bias(total: str, bias: str) -> None:
    """(c + b) * (s / 2) + b, where s / 2 is 5 and 50 and b is 1 and 2."""
    text = f"""a = {total} : f32[2, 3, 2, 2]
        m = mul(a, s) : f32[2, 3, 2, 2]
        n = mul(h, m) : f32[2, 3, 2, 2]
        y = add(n, b) : f32[2, 3, 2, 2]
        return y"""
    assert folded(text) == lines(f"""
        x = input : f32[2, 3, 4, 1]
        k.2 = constant(value=f32[1, 2, 1, 2]{{5.0, 100.0, 15.0, 200.0}}) : f32[1, 2, 1, 2]
        c.2 = conv2d(x, k.2, stride=(1, 3), padding="same") : f32[2, 3, 2, 2]
        b.1 = constant(value=f32[2]{bias}) : f32[2]
        y = add(c.2, b.1) : f32[2, 3, 2, 2]
        return y as "y"
        """)


def test_a_scale_of_zero_leaves_no_bias() -> None:
    """As a freshly initialised residual block has it; the product has as many readers as the sum had."""
    text = """z = constant(value=f32[]{0}) : f32[]
        a = add(c, b) : f32[2, 3, 2, 2]
        y = mul(a, z) : f32[2, 3, 2, 2]
        u = mul(y, s) : f32[2, 3, 2, 2]
        v = mul(y, h) : f32[2, 3, 2, 2]
        return u, v"""
    assert folded(text) == lines("""
        x = input : f32[2, 3, 4, 1]
        s = constant(value=f32[2]{10.0, 100.0}) : f32[2]
        h = constant(value=f32[]{0.5}) : f32[]
        k.1 = constant(value=f32[1, 2, 1, 2]{0.0, 0.0, 0.0, 0.0}) : f32[1, 2, 1, 2]
        y = conv2d(x, k.1, stride=(1, 3), padding="same") : f32[2, 3, 2, 2]
        u = mul(y, s) : f32[2, 3, 2, 2]
        v = mul(y, h) : f32[2, 3, 2, 2]
        return u as "u", v as "v"
        """)


@each(
    [
        "a = add(c, b) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y, c",
        "a = add(c, b) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y, a",
        "a = add(c, b) : f32[2, 3, 2, 2] scale 0.5 zero 0\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y",
        "a = sub(b, c) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y",
        "a = add(c, b) : f32[2, 3, 2, 2]\ny = mul(a, r) : f32[2, 3, 2, 2]\nreturn y",
        "a = add(c, c) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y",
        "a = relu(c) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y",
        "t = constant(value=f32[1, 1, 1, 1, 1]{2}) : f32[1, 1, 1, 1, 1]\na = add(c, b) : f32[2, 3, 2, 2]\n"
        "y = mul(a, t) : f32[1, 2, 3, 2, 2]\nreturn y",
        "t = constant(value=f32[]{3e38}) : f32[]\na = add(c, b) : f32[2, 3, 2, 2]\nd = mul(a, t) : f32[2, 3, 2, 2]\n"
        "e = mul(x, h) : f32[2, 3, 4, 1]\nreturn d, e",
    ]
)
def test_scales_that_stay(rest: str) -> None:
    graph = graph_of(CONVOLUTION + rest)
    result = fold_scales.run(graph, CONTEXT)
    assert body(result).count("mul(") == body(graph).count("mul(")
    assert body(result).count("constant(") <= body(graph).count("constant(")


def test_any_constant_between_is_scaled_too() -> None:
    text = folded("a = add(c, r) : f32[2, 3, 2, 2]\ny = mul(a, h) : f32[2, 3, 2, 2]\nreturn y")
    assert "h.1 = constant(value=f32[3, 1, 1]{0.5, 1.0, 1.5}) : f32[3, 1, 1]" in text
    assert "y = add(c.1, h.1)" in text


def test_origins_of_a_scaled_product() -> None:
    graph = graph_of(f"{CONVOLUTION}a = add(c, b) : f32[2, 3, 2, 2]\ny = mul(a, s) : f32[2, 3, 2, 2]\nreturn y")
    result = fold_scales.run(graph, CONTEXT)
    assert result["c.1"].origin == graph["c"].origin.merged(graph["s"].origin)
    assert set(result["y"].origin.spans) == {*graph["c"].origin.spans, *graph["a"].origin.spans, *graph["y"].origin.spans}


def test_a_chain_of_ragged_layers() -> None:
    random = np.random.default_rng(3)
    model = Model()
    h = model.input("x", 2, 7, 9, 3)
    for layer, (stride, padding) in enumerate([(1, "same"), ((2, 1), (0, 1, 2, 0)), (3, 1)]):
        depth = model.builder.nodes[h].type.columns
        h = model.op("conv2d", h, model.constant("k", random.standard_normal((3, 2, depth, 5 + layer))), stride=stride, padding=padding)
        for op in ("mul", "add", "mul", "sub", "mul"):
            h = model.op(op, h, model.constant("c", random.standard_normal(5 + layer)))
        h = model.op("tanh", h)
    graph = model.build(h)
    result = fold_scales.run(graph, CONTEXT)
    check(result)
    assert [node.op for node in result if node.op not in ("constant", "input")] == ["conv2d", "add", "tanh"] * 3
    assert_close(graph, result)
    assert value_of(result, result[result.nodes[-2].operands[1]].name).shape == (7,)
