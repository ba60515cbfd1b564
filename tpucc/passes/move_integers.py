"""The host moves integers of the device as they are, where it only puts them elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.layers.kinds import VIEWS
from tpucc.ops import dequantizes, quantizes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter


@dataclass(frozen=True)
class MoveIntegers(Pass):
    """Rewrites `quantize(move(dequantize(q)))` to `move(q)`, for chains of reshapes, transposes and slices, where scale and zero point are
    the same before and after. Then not a bit changes, and the host neither dequantises nor quantises.
    """

    name = "move-integers"
    summary = "moves integers on the host without making real numbers of them"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_moved)


def _moved(rewriter: Rewriter, node: Node) -> bool:
    """Puts moves of integers in the place of a `quantize`."""
    if not quantizes(node.op):
        return False
    moves: list[Node] = []
    (source,) = rewriter.operands(node)
    while source.op in VIEWS:
        moves.append(source)
        (source,) = rewriter.operands(source)
    if not moves or not dequantizes(source.op):
        return False
    (held,) = rewriter.operands(source)
    if held.type != replace(node.type, shape=held.type.shape):
        return False
    for move in reversed(moves[1:]):
        held = rewriter.make(replace(move, operands=(held.name,), type=replace(node.type, shape=move.type.shape), holds=()))
    rewriter.put(replace(moves[0], name=node.name, operands=(held.name,), type=node.type, holds=node.holds))
    return True
