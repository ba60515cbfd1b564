"""Floats for measuring: values whose scale and zero point the source fixes, as far as integers hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.ir.graph import Graph, Node
from tpucc.ops.clip import ClipAttributes
from tpucc.passes.rewriter import Names, constant_of


def saturating(graph: Graph) -> Graph:
    """The graph with a `clip` behind each such value of float32, which has its name. Quantisers rely on it: they leave out a `relu` before
    a `quantize` whose zero point is the lowest integer."""
    names = Names(graph)
    return graph.with_nodes(made for node in graph for made in _saturated(node, names))


def _saturated(node: Node, names: Names) -> Iterator[Node]:
    held = node.type.dtype == "f32" and node.type.quantisation is not None
    if not held or node.type.range is None or node.is_input or constant_of(node) is not None:
        yield node
        return
    whole = replace(node, name=names.fresh(node.name), type=node.type.plain())
    yield whole
    bounds = ClipAttributes(node.type.range.low, node.type.range.high)
    yield replace(node, op="clip", operands=(whole.name,), attributes=bounds)
