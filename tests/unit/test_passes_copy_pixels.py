"""copy-pixels: an image that grows by whole numbers is its pixels, joined with themselves."""

from __future__ import annotations

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_equal, body, check
from tpucc.ir import Graph
from tpucc.passes.device_forms import copy_pixels


def resized(size: tuple[int, int], mode: str = "nearest") -> Graph:
    model = Model()
    return model.build(model.op("resize", model.input("x", 2, 3, 4, 5), name="y", size=size, mode=mode))


@each([((6, 8), 2), ((3, 12), 1), ((9, 4), 1), ((3, 4), 0)])
def test_whole_numbers_are_copies(size: tuple[int, int], joins: int) -> None:
    graph = resized(size)
    result = copy_pixels.run(graph, CONTEXT)
    check(result)
    assert [node.op for node in result].count("concat") == joins
    assert not any(node.op == "resize" for node in result)
    assert_equal(graph, result)


@each([((6, 9), "nearest"), ((2, 8), "nearest"), ((6, 8), "bilinear")])
def test_what_needs_more_than_copies_stays(size: tuple[int, int], mode: str) -> None:
    graph = resized(size, mode)
    assert body(copy_pixels.run(graph, CONTEXT)) == body(graph)


def test_the_device_copies_between_products_and_the_host_at_the_edges() -> None:
    head = "weights random(seed=0)\nmodel m(x: f32[1, 4, 4, 8] in [-1.0, 1.0]):\n    weight a: f32[1, 1, 8, 8]\n"
    middle = tpucc.compile_source(f"{head}    return conv2d(resize(conv2d(x, a), (8, 8)), a)\n")
    edges = tpucc.compile_source(f"{head}    return resize(conv2d(resize(x, (8, 8)), a), (16, 16))\n")
    assert [node.op for node in middle.layers.nodes].count("move") == 2
    assert not any(node.op in ("move", "resize") for node in edges.layers.nodes)
