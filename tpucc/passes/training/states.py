"""Weights that are trained become states: values that each step of training gives to the next."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops.names import state, weight
from tpucc.ops.opdef import Expression
from tpucc.passes.base import Context, Pass
from tpucc.passes.rules import Match, Rules, rule


@dataclass(frozen=True)
class States(Pass):
    """Makes a `state` of each weight whose key isn't among those that are `fixed`."""

    name = "states"
    summary = "makes states of the weights that are trained"
    level = 0

    fixed: frozenset[str] = frozenset()

    def run(self, graph: Graph, context: Context) -> Graph:
        first: dict[str, Node] = {}

        def made(m: Match) -> Expression | Node | None:
            """The state of the weight's key: a new one, or that of the first weight with this key."""
            key = weight.attributes_of(m.root).key
            if key in self.fixed:
                return None
            return state(key=key) if first.setdefault(key, m.root) is m.root else first[key]

        return Rules(self.name, rule("a weight that is trained", weight(), made)).run(graph, context)
