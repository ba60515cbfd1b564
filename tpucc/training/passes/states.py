"""Weights that are trained become states: values that each step of training gives to the next."""

from __future__ import annotations

from tpucc.ir import Graph, Node
from tpucc.ops.names import state, weight
from tpucc.ops.opdef import Expression
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rules import Match, Rules, rule


@graph_pass("states", "makes states of the weights that are trained", level=0)
def states(graph: Graph, context: Context, *, fixed: frozenset[str] = frozenset()) -> Graph:
    """Makes a `state` of each weight whose key isn't among those that are `fixed`."""
    first: dict[str, Node] = {}

    def made(m: Match) -> Expression | Node | None:
        """The state of the weight's key: a new one, or that of the first weight with this key."""
        key = weight.attributes_of(m.root).key
        if key in fixed:
            return None
        return state(key=key) if first.setdefault(key, m.root) is m.root else first[key]

    return Rules("states", rule("a weight that is trained", weight(), made)).run(graph, context)
