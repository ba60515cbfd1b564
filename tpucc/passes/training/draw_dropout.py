"""Dropout becomes a product with a mask of random numbers (Srivastava et al., JMLR 15, 2014).

A value is dropped, that is set to 0, with the probability `rate`; the others are divided by `1 - rate`, so that the expected sum stays.
The random numbers are a function of the seed, the step, the example and the place in it. So they don't depend on how many cores share the
batch, or on the order in which anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ir.node import NoAttributes, Node
from tpucc.ir.types import TensorType
from tpucc.ops.dropout import DropoutAttributes
from tpucc.ops.input import OP as input_
from tpucc.ops.mul import OP as mul
from tpucc.ops.random_uniform import RandomUniformAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter
from tpucc.passes.training.build import Within
from tpucc.passes.training.names import DRAW


@dataclass(frozen=True)
class DrawDropout(Pass):
    """Rewrites `dropout(x, rate)` as `x * ((u >= rate) * (1 / (1 - rate)))`, with u uniform in 0…1.

    The n-th dropout of the graph draws the n-th sequence. With a rate of 0 it is x itself. The new input `draw` gives the seed, the step
    and the number of the first example.
    """

    name = "draw-dropout"
    summary = "makes a product with random numbers of dropout"
    level = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter = Rewriter(graph, self.name)
        uses = 0
        for node in rewriter:
            if not isinstance(node.attributes, DropoutAttributes):
                rewriter.put(node)
            elif node.attributes.rate == 0.0:
                rewriter.alias(node, node.operands[0])
            else:
                _put_mask(rewriter, node, node.attributes.rate, uses)
                uses += 1
        return rewriter.build()


def _put_mask(rewriter: Rewriter, node: Node, rate: float, use: int) -> None:
    within = Within(rewriter, node)
    draw = rewriter.once(DRAW, lambda: rewriter.put(input_.node(DRAW, (), NoAttributes(), TensorType("i32", (3,)), node.origin)))
    uniform = within.call("random_uniform", (within.value(draw.name),), RandomUniformAttributes(use, node.type.shape))
    mask = (uniform >= rate) * (1.0 / (1.0 - rate))
    rewriter.put(rewriter.in_place(node, mul(rewriter.nodes[node.operands[0]], rewriter.nodes[mask.name])))
