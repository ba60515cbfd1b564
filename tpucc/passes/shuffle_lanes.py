"""Channels in another order: a reshape, a transpose and a reshape of them become one operator, which the matrix unit computes."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ops.opdef import Expression
from tpucc.ops.shuffle_lanes import OP as shuffle_lanes
from tpucc.ops.transpose import OP as transpose
from tpucc.ops.transpose import TransposeAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rules import Match, Rules, called, once, rule, value, view


@dataclass(frozen=True)
class ShuffleLanes(Pass):
    """Rewrites `reshape(transpose(reshape(x)))` to `shuffle_lanes(x)` where only the values of each row change places, as in ShuffleNet
    (Zhang et al., arXiv 1707.01083). The device can turn no row into several, but it can pick lanes by a product.
    """

    name = "shuffle-lanes"
    summary = "makes one operator of the reshapes and the transpose that put channels into another order"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return RULES.run(graph, context)


def _shuffled(m: Match) -> Expression | None:
    """`shuffle_lanes` in the place of the last reshape; None where rows change places, or values change rows."""
    assert isinstance(m.turned.attributes, TransposeAttributes)
    rows, rank = len(m.x.type.shape) - 1, m.divided.type.rank
    perm = [axis % rank for axis in m.turned.attributes.perm]
    kept = m.x.type.shape[:-1] == m.divided.type.shape[:rows] and perm[:rows] == [*range(rows)] and m.root.type.shape == m.x.type.shape
    if rows < 1 or rank < rows + 2 or not kept:
        return None
    return shuffle_lanes(m.x, sizes=m.divided.type.shape[rows:], perm=tuple(axis - rows for axis in perm[rows:]))


divided = once(called("divided", view(value("x"))))
RULES = Rules("shuffle-lanes", rule("lanes in another order", view(once(called("turned", transpose(divided)))), _shuffled))
