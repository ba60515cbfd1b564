"""Dead code: what no output needs."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph, Node
from tpucc.passes.base import Context, Pass


@dataclass(frozen=True)
class DeadCode(Pass):
    """Keeps the nodes that the outputs depend on, and every input: those are the model's interface."""

    name = "dead-code"
    summary = "removes nodes that no output needs"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        needed = set(graph.output_nodes)
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            if node.name in needed or node.is_input:
                needed.update(node.operands)
                kept.append(node)
        return graph.with_nodes(reversed(kept))
