"""The cross entropy of a softmax becomes one operator of the softmax's operand.

`-log(softmax(z)[label])` is computed as `log(sum(exp(z))) - z[label]`: no probability underflows to zero before its logarithm is taken, and
the gradient is `softmax(z) - one_hot(label)`, by the number of examples. Keras does the same for losses of probabilities that a softmax
computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops.softmax import SoftmaxAttributes
from tpucc.ops.softmax_cross_entropy import OP as softmax_cross_entropy
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter


@dataclass(frozen=True)
class Logits(Pass):
    """Rewrites `cross_entropy(softmax(z), label)` as `softmax_cross_entropy(z, label)`, for a softmax along the last axis.

    A note says where a cross entropy is that gets no softmax.
    """

    name = "logits"
    summary = "makes one operator of the cross entropy of a softmax"
    level = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter = Rewriter(graph, self.name)
        bare: list[Node] = []
        for node in rewriter:
            if node.op != "cross_entropy":
                rewriter.put(node)
                continue
            probabilities = rewriter.nodes[node.operands[0]]
            if _is_softmax(probabilities):
                (z,) = rewriter.operands(probabilities)
                made = softmax_cross_entropy(z, rewriter.nodes[node.operands[1]])
                rewriter.put(rewriter.in_place(node, made), node, probabilities)
            else:
                rewriter.put(node)
                bare.append(node)
        return rewriter.build().noting(*map(_note, bare))


def _is_softmax(node: Node) -> bool:
    axis = node.attributes.axis if isinstance(node.attributes, SoftmaxAttributes) else None
    return node.op == "softmax" and axis in (-1, node.type.rank - 1)


def _note(node: Node) -> str:
    return f"line {node.origin.line}: cross_entropy expects probabilities, and {node.operands[0]} isn't a softmax of the last axis"
