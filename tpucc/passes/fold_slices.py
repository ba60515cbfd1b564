"""A product of some of a value's lanes becomes a product of all of them, with weights of zero for the others.

The device picks lanes by a product of their own. But the tile that multiplies them has room for the lanes beside them in the same column
block, and multiplying those by zero costs nothing. So grouped convolutions read their channels where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, Node
from tpucc.ops.fused import Fused
from tpucc.ops.slice import SliceAttributes, as_slice
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, constant_of, is_pinned, is_product


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
        rewriter = Rewriter(graph, self.name)
        after: set[str] = set()
        for node in rewriter:
            if is_product(node) and not isinstance(node.attributes, Fused) and node.operands[0] in after:
                node = _folded(rewriter, node, context.target.mxu)
            if is_product(node) or any(name in after for name in node.operands):
                after.add(node.name)
            rewriter.put(node)
        return rewriter.build()


def _folded(rewriter: Rewriter, node: Node, mxu: int) -> Node:
    """The product without the slice before it, if it is one of lanes; else as it is."""
    part, weights = rewriter.operands(node)
    lanes = _lanes(rewriter, part, mxu)
    value = constant_of(weights)
    if lanes is None or value is None or value.shape[-2] != part.type.columns:  # a kernel in groups has fewer rows than lanes
        return node
    (x,) = rewriter.operands(part)

    def widened() -> Node:
        data = np.zeros((*value.shape[:-2], x.type.columns, value.shape[-1]), np.float32)
        data[..., lanes, :] = value.data
        return rewriter.constant(weights.name, Constant(data), weights.origin)

    return replace(node, operands=(x.name, rewriter.once((part.name, weights.name), widened).name))


def _lanes(rewriter: Rewriter, part: Node, mxu: int) -> slice | None:
    """The lanes that `part` takes of all rows of its operand, when they lie in no more column blocks than they would fill."""
    if not isinstance(part.attributes, SliceAttributes) or is_pinned(part):
        return None
    (x,) = rewriter.operands(part)
    *rows, lanes = part.attributes.ranges or (range(0),)
    if not lanes or rows != [range(size) for size in x.type.shape[:-1]] or part.attributes.squeeze:
        return None
    blocks = max(lanes) // mxu - min(lanes) // mxu + 1
    return as_slice(lanes) if blocks <= -(-len(lanes) // mxu) else None
