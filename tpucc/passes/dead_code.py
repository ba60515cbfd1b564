"""Dead code: what no output needs, found in the graph as a whole."""

from __future__ import annotations

from tpucc.ir import Graph
from tpucc.ir.dataflow import needed_values
from tpucc.passes.base import Context, graph_pass


@graph_pass("dead-code", "removes nodes that no output needs", level=1)
def dead_code(graph: Graph, context: Context) -> Graph:
    """Keeps the nodes that the outputs depend on, and every input: those are the model's interface."""
    return live(graph)


def live(graph: Graph) -> Graph:
    """The inputs, and what the outputs need."""
    needed = needed_values(graph)
    return graph.with_nodes(node for node in graph if node.name in needed or node.is_input)
