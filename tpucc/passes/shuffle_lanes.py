"""Channels in another order: a reshape, a transpose and a reshape of them become one operator, which the matrix unit computes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph, Node
from tpucc.ops.shuffle_lanes import ShuffleLanesAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, is_view


@dataclass(frozen=True)
class ShuffleLanes(Pass):
    """Rewrites `reshape(transpose(reshape(x)))` to `shuffle_lanes(x)` where only the values of each row change places, as in ShuffleNet
    (Zhang et al., arXiv 1707.01083). The device can turn no row into several, but it can pick lanes by a product.
    """

    name = "shuffle-lanes"
    summary = "makes one operator of the reshapes and the transpose that put channels into another order"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_shuffle)


def _shuffle(rewriter: Rewriter, node: Node) -> bool:
    """Puts `shuffle_lanes` in the place of the last reshape."""
    if not is_view(node):
        return False
    (turned,) = rewriter.operands(node)
    if not isinstance(turned.attributes, TransposeAttributes) or not rewriter.is_free(turned):
        return False
    (divided,) = rewriter.operands(turned)
    if not is_view(divided) or not rewriter.is_free(divided):
        return False
    (x,) = rewriter.operands(divided)
    rows, rank = len(x.type.shape) - 1, divided.type.rank
    perm = [axis % rank for axis in turned.attributes.perm]
    kept = x.type.shape[:-1] == divided.type.shape[:rows] and perm[:rows] == [*range(rows)] and node.type.shape == x.type.shape
    if rows < 1 or rank < rows + 2 or not kept:
        return False
    attributes = ShuffleLanesAttributes(divided.type.shape[rows:], tuple(axis - rows for axis in perm[rows:]))
    rewriter.put(replace(node, op="shuffle_lanes", operands=(x.name,), attributes=attributes), turned, divided)
    return True
