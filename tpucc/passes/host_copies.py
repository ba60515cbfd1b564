"""Nodes that placement adds: copies for the host of nodes that the device computes, and clamps for the device of what the host clamps."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from dataclasses import replace

from tpucc.ir import Attributes, Graph, Node, Output
from tpucc.ops.clip import ClipAttributes
from tpucc.passes.rewriter import Names


def with_copies(graph: Graph, shared: Collection[str], host: Container[str], by: str) -> tuple[Graph, dict[str, str]]:
    """The graph with a copy of each node of `shared`, and the copied node of each copy. The nodes of `host`, other copies and
    the outputs read the copies. `by` is the pass that makes them."""
    names = Names(graph)
    copies = {node.name: names.fresh(node.name) for node in graph if node.name in shared}

    def reading_copies(node: Node) -> Node:
        return replace(node, operands=tuple(copies.get(name, name) for name in node.operands))

    def nodes() -> Iterator[Node]:
        for node in graph:
            yield reading_copies(node) if node.name in host else node
            if node.name in copies:
                yield replace(reading_copies(node), name=copies[node.name], origin=node.origin.by(by))

    outputs = tuple(Output(output.name, copies.get(output.node, output.node)) for output in graph.outputs)
    return replace(graph, nodes=tuple(nodes()), outputs=outputs), {copy: name for name, copy in copies.items()}


def with_clamps(graph: Graph, guards: Collection[str], by: str) -> Graph:
    """The graph with a clamp before each clamp of `guards`, to the same bounds and 0. A layer takes it in, and its integers have the
    narrower range.

    Nothing is added if a clamp has other attributes than bounds, or reads a clamp that is as narrow.
    """
    names = Names(graph)

    def nodes() -> Iterator[Node]:
        for node in graph:
            wide = _with_zero(node.attributes) if node.name in guards else None
            if wide is None or graph[node.operands[0]].attributes == wide:
                yield node
            else:
                made = replace(node, name=names.fresh(node.name), attributes=wide, origin=node.origin.by(by))
                yield from (made, replace(node, operands=(made.name,)))

    changed = tuple(nodes())
    return graph if len(changed) == len(graph) else graph.with_nodes(changed)


def _with_zero(attributes: Attributes) -> ClipAttributes | None:
    return ClipAttributes(min(attributes.low, 0.0), max(attributes.high, 0.0)) if isinstance(attributes, ClipAttributes) else None
