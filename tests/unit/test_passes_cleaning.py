"""Dead code, common subexpressions and constant folding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.rewrites import CONTEXT, assert_equal, check, drawn_graph, graph_of, lines, ran
from tpucc.diagnostics import Origin, Span
from tpucc.ir.printer import print_graph
from tpucc.ops.constant import ConstantAttributes
from tpucc.passes.base import Pass
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.dead_code import dead_code


def test_dead_code_goes_and_inputs_stay() -> None:
    assert ran(
        dead_code,
        """
        x = input : f32[2]
        unused = input : f32[3]
        a = relu(x) : f32[2]
        b = tanh(x) : f32[2]
        c = sigmoid(b) : f32[2]
        d = add(a, a) : f32[2]
        return a
        """,
    ) == lines("""
        x = input : f32[2]
        unused = input : f32[3]
        a = relu(x) : f32[2]
        return a as "a"
        """)


def test_equal_nodes_are_computed_once() -> None:
    assert ran(
        common_subexpressions,
        """
        x = input : f32[2]
        y = input : f32[2]
        a = leaky_relu(x, alpha=0.5) : f32[2]
        b = leaky_relu(x, alpha=0.5) : f32[2]
        c = leaky_relu(x, alpha=0.25) : f32[2]
        d = leaky_relu(y, alpha=0.5) : f32[2]
        e = add(a, c) : f32[2]
        f = add(b, c) : f32[2]
        g = add(c, b) : f32[2]
        return e, f, g, d
        """,
    ) == lines("""
        x = input : f32[2]
        y = input : f32[2]
        a = leaky_relu(x, alpha=0.5) : f32[2]
        c = leaky_relu(x, alpha=0.25) : f32[2]
        d = leaky_relu(y, alpha=0.5) : f32[2]
        e = add(a, c) : f32[2]
        g = add(c, a) : f32[2]
        return e as "e", e as "f", g as "g", d as "d"
        """)


def test_equal_constants_are_one_and_values_that_only_compare_equal_are_not() -> None:
    assert ran(
        common_subexpressions,
        """
        a = constant(value=f32[2]{0.0, 1.0}) : f32[2]
        b = constant(value=f32[2]{0.0, 1.0}) : f32[2]
        c = constant(value=f32[2]{-0.0, 1.0}) : f32[2]
        d = constant(value=f32[2, 1]{0.0, 1.0}) : f32[2, 1]
        e = full(shape=(2,), value=0.0) : f32[2]
        f = full(shape=(2,), value=-0.0) : f32[2]
        return a, b, c, d, e, f
        """,
    ) == lines("""
        a = constant(value=f32[2]{0.0, 1.0}) : f32[2]
        c = constant(value=f32[2]{-0.0, 1.0}) : f32[2]
        d = constant(value=f32[2, 1]{0.0, 1.0}) : f32[2, 1]
        e = full(shape=(2,), value=0.0) : f32[2]
        f = full(shape=(2,), value=-0.0) : f32[2]
        return a as "a", a as "b", c as "c", d as "d", e as "e", f as "f"
        """)


def test_different_quantisation_or_range_keeps_nodes_apart() -> None:
    text = """
        x = input : f32[2]
        a = relu(x) : f32[2]
        b = relu(x) : f32[2] scale 0.5 zero 3
        c = relu(x) : f32[2] in [0.0, 1.0]
        return a, b, c
        """
    assert ran(common_subexpressions, text).count("relu") == 3


def test_the_node_that_stays_has_the_places_of_all() -> None:
    graph = graph_of("x = input : f32[2]\na = relu(x) : f32[2]\nb = relu(x) : f32[2]\nc = relu(x) : f32[2]\nreturn a, b, c")
    result = common_subexpressions.run(graph, CONTEXT)
    assert result["a"].origin == Origin((Span(3, 1, 3, 2), Span(4, 1, 4, 2), Span(5, 1, 5, 2)))


def test_constants_are_computed() -> None:
    assert ran(
        constant_folding,
        """
        x = input : f32[2, 2]
        z = zeros(shape=(2, 2)) : f32[2, 2]
        o = ones(shape=(2,)) : f32[2]
        h = full(shape=(), value=0.5) : f32[]
        w = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        t = transpose(w, perm=(1, 0)) : f32[2, 2]
        s = sub(t, o) : f32[2, 2]
        m = mul(s, h) : f32[2, 2]
        p = matmul(m, w) : f32[2, 2]
        q = relu(p) : f32[2, 2]
        y = matmul(x, q) : f32[2, 2]
        return y, t, z
        """,
    ) == lines("""
        x = input : f32[2, 2]
        z = constant(value=f32[2, 2]{0.0, 0.0, 0.0, 0.0}) : f32[2, 2]
        t = constant(value=f32[2, 2]{1.0, 3.0, 2.0, 4.0}) : f32[2, 2]
        q = constant(value=f32[2, 2]{3.0, 4.0, 5.0, 7.0}) : f32[2, 2]
        y = matmul(x, q) : f32[2, 2]
        return y as "y", t as "t", z as "z"
        """)


def test_folded_values_come_from_the_place_of_their_operator() -> None:
    graph = graph_of("a = ones(shape=(2,)) : f32[2]\nb = relu(a) : f32[2]\nreturn b")
    assert constant_folding.run(graph, CONTEXT)["b"].origin == Origin((Span(3, 1, 3, 2),), (), "constant-folding")


def test_what_would_grow_too_large_is_not_folded() -> None:
    text = """
        a = ones(shape=(4,)) : f32[4]
        b = ones(shape=(4, 1)) : f32[4, 1]
        c = add(a, b) : f32[4, 4]
        w = constant(value=f32[5, 4] random(0, "w")) : f32[5, 4]
        t = transpose(w, perm=(1, 0)) : f32[4, 5]
        return c, t
        """
    result = ran(constant_folding(largest=15), text)
    assert "c = add(a, b)" in result
    assert "t = constant" in result


def test_fixed_quantisation_is_not_folded() -> None:
    text = """
        a = ones(shape=(2,)) : f32[2]
        b = relu(a) : f32[2] scale 0.5 zero 3
        c = quantize(a, scale=0.5) : i8[2] scale 0.5 zero 0
        d = dequantize(c) : f32[2]
        e = constant(value=f32[2]{1.0, 2.0}) : f32[2] scale 0.5 zero 0
        f = relu(e) : f32[2]
        return b, d, f
        """
    assert ran(constant_folding, text) == lines("""
        a = constant(value=f32[2]{1.0, 1.0}) : f32[2]
        b = relu(a) : f32[2] scale 0.5 zero 3
        c = quantize(a, scale=0.5) : i8[2] scale 0.5 zero 0
        d = dequantize(c) : f32[2]
        e = constant(value=f32[2]{1.0, 2.0}) : f32[2] scale 0.5 zero 0
        f = relu(e) : f32[2]
        return b as "b", d as "d", f as "f"
        """)


def test_a_constant_that_several_read_is_folded_once() -> None:
    graph = graph_of("""
        a = ones(shape=(3,)) : f32[3]
        b = sigmoid(a) : f32[3]
        c = tanh(b) : f32[3]
        d = add(b, c) : f32[3]
        return d, b
        """)
    result = constant_folding.run(graph, CONTEXT)
    values = [node.attributes.value.data for node in result if isinstance(node.attributes, ConstantAttributes)]
    sigmoid = np.float32(1 / (1 + np.exp(-1.0)))
    np.testing.assert_allclose(values[0], np.full(3, sigmoid), rtol=1e-6)
    np.testing.assert_allclose(values[1], np.full(3, sigmoid + np.tanh(sigmoid)), rtol=1e-6)
    assert len(values) == len(result.nodes) == 2


@pytest.mark.parametrize("optimisation", [dead_code, common_subexpressions, constant_folding], ids=lambda p: p.name)
def test_results_stay_bit_for_bit(optimisation: Pass) -> None:
    changed = 0
    for seed in range(60):
        graph = drawn_graph(seed)
        before = print_graph(graph)
        result = optimisation.run(graph, CONTEXT)
        check(result)
        assert_equal(graph, result, seed)
        assert print_graph(graph) == before
        assert print_graph(optimisation.run(result, CONTEXT)) == print_graph(result)
        changed += result != graph
    assert changed > 5
