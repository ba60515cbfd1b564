"""Padding before a convolution becomes the convolution's own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_equal, body, check, graph_of, lines, ran
from tpucc.ir import Graph
from tpucc.ops.windows import MAX_STEP, Padding, Pair
from tpucc.passes.folding import fold_padding

Pads = tuple[tuple[int, int], ...]


def padded(pads: Pads, stride: Pair = 1, padding: Padding = "valid", shape: tuple[int, ...] = (2, 7, 6, 3)) -> Graph:
    """A pad, a convolution with a kernel of 3 by 2 and 5 channels, and what follows."""
    model = Model()
    x = model.op("pad", model.input("x", *shape), name="p", pads=pads)
    depth = model.builder.nodes[x].type.columns
    kernel = model.constant("k", (np.arange(3 * 2 * depth * 5) * 7 % 11 - 5).reshape(3, 2, depth, 5))
    return model.build(model.op("conv2d", x, kernel, name="y", stride=stride, padding=padding))


@each(
    [
        (1, "valid", "(1, 2, 0, 3)"),
        (2, "valid", "(1, 2, 0, 3)"),
        ((2, 1), 1, "(2, 3, 1, 4)"),
        ((1, 3), (1, 0, 2, 1), "(2, 2, 2, 4)"),
        # 10 rows: 5 outputs of stride 2 need 11, so that one is missing below; 9 columns: 3 of stride 3 need 8.
        ((2, 3), "same", "(1, 3, 0, 3)"),
        # 10 outputs of height 3 need 12 rows; 9 of width 2 need 10 columns.
        (1, "same", "(2, 3, 0, 4)"),
    ]
)
def test_padding_is_taken_in(stride: Pair, padding: Padding, found: str) -> None:
    graph = padded(((0, 0), (1, 2), (0, 3), (0, 0)), stride, padding)
    result = fold_padding.run(graph, CONTEXT)
    check(result)
    assert [node.op for node in result] == ["input", "constant", "conv2d"]
    assert f"padding={found}" in body(result)
    assert_equal(graph, result)
    assert body(fold_padding.run(result, CONTEXT)) == body(result)


def test_dilation_and_groups_stay() -> None:
    model = Model()
    x = model.op("pad", model.input("x", 2, 7, 6, 4), name="p", pads=((0, 0), (1, 2), (0, 3), (0, 0)))
    kernel = model.constant("k", (np.arange(3 * 2 * 2 * 6) * 7 % 11 - 5).reshape(3, 2, 2, 6))
    graph = model.build(model.op("conv2d", x, kernel, name="y", padding="same", dilation=(2, 3), groups=2))
    result = fold_padding.run(graph, CONTEXT)
    assert "padding=(3, 4, 1, 5), dilation=(2, 3), groups=2" in body(result)
    assert_equal(graph, result)


@each([((1, 0), (1, 1), (1, 1), (0, 0)), ((0, 0), (1, 1), (1, 1), (0, 1)), ((0, 0), (MAX_STEP + 1, 0), (0, 0), (0, 0))])
def test_other_padding_stays(pads: Pads) -> None:
    graph = padded(pads, shape=(1, 3, 2, 1))
    assert body(fold_padding.run(graph, CONTEXT)) == body(graph)


@each(
    [
        ("", "y = max_pool(p) : f32[1, 2, 2, 1]"),
        ("", "y = avg_pool(p) : f32[1, 2, 2, 1]"),
        ("", "y = relu(p) : f32[1, 4, 5, 1]"),
        (" scale 0.5 zero 1", "y = conv2d(p, k) : f32[1, 3, 5, 1]"),
    ]
)
def test_what_is_no_convolution_keeps_its_padding(before: str, rest: str) -> None:
    graph = graph_of(f"""
        x = input : f32[1, 3, 3, 1]
        k = constant(value=f32[2, 1, 1, 1]{{1, 2}}) : f32[2, 1, 1, 1]
        p = pad(x, pads=((0, 0), (0, 1), (1, 1), (0, 0))) : f32[1, 4, 5, 1]{before}
        {rest}
        return y
        """)
    assert "p = pad(x" in body(fold_padding.run(graph, CONTEXT))
    assert rest in body(fold_padding.run(graph, CONTEXT))


def test_pads_join_and_stay_where_others_read_them() -> None:
    text = """
        x = input : f32[1, 3, 3, 1]
        k = constant(value=f32[2, 1, 1, 1]{1, 2}) : f32[2, 1, 1, 1]
        p = pad(x, pads=((0, 0), (0, 1), (1, 1), (0, 0))) : f32[1, 4, 5, 1]
        q = pad(p, pads=((0, 0), (2, 0), (0, 0), (0, 0))) : f32[1, 6, 5, 1]
        a = conv2d(q, k) : f32[1, 5, 5, 1]
        b = conv2d(p, k, stride=2) : f32[1, 2, 3, 1]
        c = relu(q) : f32[1, 6, 5, 1]
        return a, b, c
        """
    assert ran(fold_padding, text) == lines("""
        x = input : f32[1, 3, 3, 1]
        k = constant(value=f32[2, 1, 1, 1]{1.0, 2.0}) : f32[2, 1, 1, 1]
        q = pad(x, pads=((0, 0), (2, 1), (1, 1), (0, 0))) : f32[1, 6, 5, 1]
        a = conv2d(x, k, padding=(2, 1, 1, 1)) : f32[1, 5, 5, 1]
        b = conv2d(x, k, stride=2, padding=(0, 1, 1, 1)) : f32[1, 2, 3, 1]
        c = relu(q) : f32[1, 6, 5, 1]
        return a as "a", b as "b", c as "c"
        """)


def test_origins_of_all_are_kept() -> None:
    graph = padded(((0, 0), (1, 0), (0, 1), (0, 0)))
    assert fold_padding.run(graph, CONTEXT)["y"].origin == graph["p"].origin.merged(graph["y"].origin)


@pytest.mark.long
def test_large_graphs_take_time_in_proportion() -> None:
    pad = "pads=((0, 0), (1, 0), (0, 0), (0, 0))"
    steps = [f"p{i} = pad(n{i}, {pad}) : f32[1, 4, 1, 1]\nn{i + 1} = conv2d(p{i}, k) : f32[1, 3, 1, 1]" for i in range(2_000)]
    text = ["n0 = input : f32[1, 3, 1, 1]", "k = constant(value=f32[2, 1, 1, 1]{1, 2}) : f32[2, 1, 1, 1]", *steps, "return n2000"]
    graph = graph_of("\n".join(text))
    assert len(fold_padding.run(graph, CONTEXT)) == 2_002
