"""The cross entropy of a softmax becomes one operator of the softmax's operand.

`-log(softmax(z)[label])` is computed as `log(sum(exp(z))) - z[label]`: no probability underflows to zero before its logarithm is taken, and
the gradient is `softmax(z) - one_hot(label)`, by the number of examples. Keras does the same for losses of probabilities that a softmax
computed.
"""

from __future__ import annotations

from tpucc.ir import Graph, Node
from tpucc.ops.names import cross_entropy, softmax, softmax_cross_entropy
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.rules import Match, Rules, called, rule, value


@graph_pass("logits", "makes one operator of the cross entropy of a softmax", level=0)
def logits(graph: Graph, context: Context) -> Graph:
    """Rewrites `cross_entropy(softmax(z), label)` as `softmax_cross_entropy(z, label)`, for a softmax along the last axis.

    A note says where a cross entropy is that gets no softmax.
    """
    of_softmax = cross_entropy(called("probabilities", softmax(value("z"))), value("label"))
    fused = rule("the cross entropy of a softmax", of_softmax, lambda m: softmax_cross_entropy(m.z, m.label), when=_is_along_last_axis)
    made = Rules("logits", fused).run(graph, context)
    return made.noting(*(_note(node) for node in made if cross_entropy.made(node)))


def _is_along_last_axis(m: Match) -> bool:
    return softmax.attributes_of(m.probabilities).axis in (-1, m.probabilities.type.rank - 1)


def _note(node: Node) -> str:
    return f"line {node.origin.line}: cross_entropy expects probabilities, and {node.operands[0]} isn't a softmax of the last axis"
