"""Dead code: what no output needs."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.dataflow import needed_values
from tpucc.ir.graph import Graph
from tpucc.passes.base import Context, Pass


@dataclass(frozen=True)
class DeadCode(Pass):
    """Keeps the nodes that the outputs depend on, and every input: those are the model's interface."""

    name = "dead-code"
    summary = "removes nodes that no output needs"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return live(graph)


def live(graph: Graph) -> Graph:
    """The inputs, and what the outputs need."""
    needed = needed_values(graph)
    return graph.with_nodes(node for node in graph if node.name in needed or node.is_input)
