"""Activations move from behind a pool to the product before it.

A function that never falls keeps the order of its values: the largest of them before is the largest after, `f(max(a, b))` is
`max(f(a), f(b))`. Next to the product the activation unit applies it on the way, at no cost; behind the pool it is a layer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph, Node
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Pooling
from tpucc.passes.base import Context, Pass
from tpucc.passes.biases import OpenSums
from tpucc.passes.rewriter import is_function


@dataclass(frozen=True)
class HoistActivations(Pass):
    """Rewrites `f(max_pool(x))` to `max_pool(f(x))` where f never falls, x is a product with or without a bias, and neither x nor the
    pool has another use.
    """

    name = "hoist-activations"
    summary = "moves the activation after a max_pool before it, to the product there"
    level = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        return OpenSums(graph, self.name).rewrite(_hoist)


def _hoist(sums: OpenSums, node: Node) -> bool:
    """Puts the pool under the name of the activation after it, and the activation before it. gelu, silu and hard_swish fall somewhere."""
    if not is_function(node) or not facts_of(node.op).monotone(node.attributes):
        return False
    (pool,) = sums.operands(node)
    if legalisation_of(pool.op) != Pooling("max") or not sums.is_free(pool):
        return False
    (x,) = sums.operands(pool)
    if not sums.takes_bias(x):
        return False
    moved = sums.put(replace(node, name=sums.fresh(node.name), operands=(x.name,), type=x.type.plain()))
    sums.put(replace(pool, name=node.name, operands=(moved.name,), type=node.type), pool)
    return True
