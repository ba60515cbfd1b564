"""fold-slices: products of some lanes read all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.networks import elaborated, results
from tpucc.ir import Graph, Quantisation
from tpucc.passes.base import Context
from tpucc.passes.folding import fold_slices
from tpucc.target import load_target

CONTEXT = Context(load_target("tpu_v1"))
HEAD = "weights random(seed=1)\nmodel m(x: f32[2, 5, 6, 4]):\n    weight a: f32[1, 1, 4, WIDTH]\n    h = conv2d(x, a)\n"


def folded(body: str, width: int = 12) -> tuple[Graph, Graph]:
    graph = elaborated(HEAD.replace("WIDTH", str(width)) + body)
    return graph, fold_slices.run(graph, CONTEXT)


def slices(graph: Graph) -> int:
    return sum(node.op == "slice" for node in graph)


@each(
    [
        "    weight w: f32[5, 7]\n    return h[:, :, :, 3:8] @ w\n",
        "    weight w: f32[3, 2, 5, 7]\n    return conv2d(h[:, :, :, 3:8], w, stride=2, padding=1)\n",
        "    weight w: f32[5, 7]\n    p = h[:, :, :, 3:8]\n    return p @ w, relu(p @ w)\n",
        "    weight w: f32[1, 7]\n    return h[:, :, :, 11:] @ w\n",
        "    weight w: f32[4, 7]\n    return h[:, :, :, 2::3] @ w\n",
        "    weight w: f32[3, 2, 5, 7]\n    return conv2d(h[:, :, :, 9::-2], w)\n",
    ]
)
def test_lanes_are_read_where_they_lie(body: str) -> None:
    before, after = folded(body)
    assert slices(before) > 0
    assert slices(after) == 0
    x = {"x": np.random.default_rng(3).standard_normal((2, 5, 6, 4)).astype(np.float32)}
    for name, value in results(before, x).items():
        np.testing.assert_allclose(results(after, x)[name], value, rtol=1e-5, atol=1e-5)


@each(
    [
        ("    weight w: f32[12, 7]\n    return h[:, 1:] @ w\n", 12),
        ("    weight w: f32[5, 7]\n    return h[:, 1:, :, 3:8] @ w\n", 12),
        ("    weight w: f32[3, 7]\n    return x[:, :, :, 1:] @ w, h\n", 12),
        ("    weight w: f32[100, 7]\n    return h[:, :, :, 200:300] @ w\n", 300),
        ("    return relu(h[:, :, :, 3:8])\n", 12),
        ("    weight w: f32[1, 1, 1, 5]\n    return conv2d(h[:, :, :, 3:8], w, groups=5)\n", 12),
        ("    weight w: f32[12, 7]\n    return h[:, ::2] @ w\n", 12),
        ("    weight w: f32[3, 7]\n    return h[:, :, :, ::256] @ w\n", 600),
    ]
)
def test_it_leaves_alone_what_would_cost_more(body: str, width: int) -> None:
    before, after = folded(body, width)
    assert slices(after) == slices(before) > 0


def test_a_slice_whose_integers_the_source_fixes_stays() -> None:
    graph = elaborated(HEAD.replace("WIDTH", "12") + "    weight w: f32[5, 7]\n    return h[:, :, :, 3:8] @ w\n")
    pinned = graph.with_nodes(
        replace(node, type=node.type.with_quantisation(Quantisation(0.5, 0))) if node.op == "slice" else node for node in graph
    )
    assert slices(fold_slices.run(graph, CONTEXT)) == 0
    assert fold_slices.run(pinned, CONTEXT) == pinned


GROUPS = """    y = []
    for i in range(3):
        weight w: f32[3, 3, 4, 2] = "group{i}"
        y = y + [conv2d(h[:, :, :, 4 * i:4 * i + 4], w)]
    return concat(y)
"""


def test_grouped_convolutions_need_no_products_for_their_lanes() -> None:
    exe = tpucc.compile_source(HEAD.replace("WIDTH", "12") + GROUPS)
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    operators = [node.op for node in exe.compilation.layers]
    assert operators.count("conv") == 4
    assert "fc" not in operators


@each([("0:64:2", 32), ("0:64:4", 16)])
def test_products_with_zeros_are_none_of_the_models(lanes: str, count: int) -> None:
    """Rows of zeros stand where a slice leaves lanes out."""
    body = f"weight w: f32[8, 64]\n    weight v: f32[{count}, 8]\n    return relu(x @ w)[:, {lanes}] @ v"
    text = f"weights random(seed=0)\nmodel m(x: f32[4, 8] in [-1.0, 1.0]):\n    {body}\n"
    assert [tpucc.compile_source(text, level=level).stats["macs"] for level in (1, 2)] == [4 * 8 * 64 + 4 * count * 8] * 2
