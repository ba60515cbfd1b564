"""A product of some of a value's lanes becomes a product of all of them, with weights of zero for the others.

The device picks lanes by a product of their own. But the tile that multiplies them has room for the lanes beside them in the same column
block, and multiplying those by zero costs nothing. So grouped convolutions read their channels where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops.fused import Fused
from tpucc.ops.opdef import Expression
from tpucc.ops.slice import SliceAttributes, as_slice
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, constant_of, is_pinned, is_product
from tpucc.passes.rules import Family, Match, Rules, applied, constant, rule, variable


@dataclass(frozen=True)
class FoldSlices(Pass):
    """Rewrites `x[..., a:b] @ w` to `x @ w'`, and convolutions likewise, where w' has the rows of w from row a on and zeros elsewhere;
    `x[..., a:b:s]` too.

    Only values that follow a product are worth it, for the host slices its own for nothing; and only lanes that lie in no more column
    blocks of x than they would fill by themselves.
    """

    name = "fold-slices"
    summary = "replaces slices of a product's input columns by weights of zero for the other columns"
    level = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        return RULES.run(graph, context, using=BelowProducts)


class BelowProducts(Rewriter):
    """Knows the values that depend on a product."""

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self.below: set[str] = set()

    def put(self, node: Node, *fused: Node) -> Node:
        """Adds a node to the new graph, and notes whether it depends on a product."""
        if is_product(node) or not self.below.isdisjoint(node.operands):
            self.below.add(node.name)
        return super().put(node, *fused)


def _without_slice(m: Match) -> Expression | None:
    """The product of all lanes; None where the slice before it isn't one of lanes that are worth it."""
    lanes, weights = _lanes(m.part, m.rewriter, m.context.target.mxu), constant_of(m.weights)
    if lanes is None or weights is None or weights.shape[-2] != m.part.type.columns:  # a kernel in groups has fewer rows than lanes
        return None
    (x,) = m.rewriter.operands(m.part)

    def widened() -> Node:
        data = np.zeros((*weights.shape[:-2], x.type.columns, weights.shape[-1]), np.float32)
        data[..., lanes, :] = weights.data
        return m.rewriter.constant(m.weights.name, Constant(data), m.weights.origin)

    return applied(m.root, x, m.rewriter.once((m.part.name, m.weights.name), widened))


def _is_worthwhile(m: Match) -> bool:
    assert isinstance(m.rewriter, BelowProducts)
    return m.part.name in m.rewriter.below


def _lanes(part: Node, rewriter: Rewriter, mxu: int) -> slice | None:
    """The lanes that `part` takes of all rows of its operand, when they lie in no more column blocks than they would fill."""
    assert isinstance(part.attributes, SliceAttributes)
    (x,) = rewriter.operands(part)
    *rows, lanes = part.attributes.ranges or (range(0),)
    if not lanes or rows != [range(size) for size in x.type.shape[:-1]] or part.attributes.squeeze:
        return None
    blocks = max(lanes) // mxu - min(lanes) // mxu + 1
    return as_slice(lanes) if blocks <= -(-len(lanes) // mxu) else None


unfused = Family(lambda node: is_product(node) and not isinstance(node.attributes, Fused))
part = variable("part", lambda node: isinstance(node.attributes, SliceAttributes) and not is_pinned(node))
RULES = Rules("fold-slices", rule("a product of some lanes", unfused(part, constant("weights")), _without_slice, when=_is_worthwhile))
