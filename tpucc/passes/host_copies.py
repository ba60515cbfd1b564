"""Copies of nodes that the device computes, for the host to compute as well."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from dataclasses import replace

from tpucc.ir.graph import Graph, Node, Output
from tpucc.passes.rewriter import Names


def with_copies(graph: Graph, shared: Collection[str], host: Container[str], by: str) -> tuple[Graph, dict[str, str]]:
    """The graph with a copy of each node of `shared`, which the nodes of `host`, the copies and the outputs read in its place; and what
    each copy is one of. `by` is the pass that makes them."""
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
