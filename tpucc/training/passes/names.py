"""The names of the outputs of graphs in training, and of what lies behind them."""

from __future__ import annotations

from tpucc.ir import Graph, Node
from tpucc.training.operators.state import StateAttributes

LOSS = "loss"
DRAW = "draw"
"""The input with the seed, the step and the number of the part's first example: i32[3]; only in graphs with dropout."""
NEXT = "next "
GRADIENT = "gradient "


def states(graph: Graph) -> tuple[Node, ...]:
    """The states, in the order of the graph."""
    return tuple(node for node in graph if isinstance(node.attributes, StateAttributes))


def key_of(node: Node) -> str:
    """The key of a state."""
    assert isinstance(node.attributes, StateAttributes)
    return node.attributes.key


def loss_of(graph: Graph) -> str:
    """The node of the loss."""
    return next(output.node for output in graph.outputs if output.name == LOSS)


def values_of(graph: Graph, kind: str) -> dict[str, str]:
    """For each state that has an output of this kind (`NEXT` or `GRADIENT`), by the state's name, the node behind the output."""
    return {output.name.removeprefix(kind): output.node for output in graph.outputs if output.name.startswith(kind)}
