"""Activations move from behind a pool to the product before it.

A function that never falls keeps the order of its values: the largest of them before is the largest after, `f(max(a, b))` is
`max(f(a), f(b))`. Next to the product the activation unit applies it on the way, at no cost; behind the pool it is a layer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Pooling
from tpucc.passes.base import Context, Pass
from tpucc.passes.biases import OpenSums, sums_of
from tpucc.passes.rules import Family, Match, Rules, called, function, once, rule, value


@dataclass(frozen=True)
class HoistActivations(Pass):
    """Rewrites `f(max_pool(x))` to `max_pool(f(x))` where f never falls, x is a product with or without a bias, and neither x nor the
    pool has another use.
    """

    name = "hoist-activations"
    summary = "moves the activation after a max_pool before it, to the product there"
    level = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        return RULES.run(graph, context, using=OpenSums)


def _hoisted(m: Match) -> Node:
    """The pool of the function. gelu, silu and hard_swish fall somewhere."""
    return m.moved(m.pool, m.rewriter.again(m.root, m.x))


def _keeps_order(m: Match) -> bool:
    """Whether the function never falls, and becomes the activation of what the pool reads."""
    return facts_of(m.root.op).monotone(m.root.attributes) and sums_of(m).takes_bias(m.x)


largest = Family(lambda node: legalisation_of(node.op) == Pooling("max"))
RULES = Rules(
    "hoist-activations",
    rule("a function of a pool", function(once(called("pool", largest(value("x"))))), _hoisted, when=_keeps_order),
)
