"""Weights that are trained become states: values that each step of training gives to the next."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ops.state import OP as state
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter


@dataclass(frozen=True)
class States(Pass):
    """Makes a `state` of each weight whose key isn't among those that are `fixed`."""

    name = "states"
    summary = "makes states of the weights that are trained"
    level = 0

    fixed: frozenset[str] = frozenset()

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter = Rewriter(graph, self.name)
        first: dict[str, str] = {}
        for node in rewriter:
            if not isinstance(node.attributes, WeightAttributes) or node.attributes.key in self.fixed:
                rewriter.put(node)
            elif (name := first.setdefault(node.attributes.key, node.name)) != node.name:
                rewriter.alias(node, name)
            else:
                rewriter.put(rewriter.in_place(node, state(key=node.attributes.key)))
        return rewriter.build()
