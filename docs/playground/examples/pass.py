"""A pass of your own: it gets the graph of operators, and returns another one of the same meaning.

What it prints is shown beside. Write relu(relu(...)) in the model to see that it does something.
"""

from dataclasses import dataclass
from typing import ClassVar

from tpucc import Context, Graph, Node
from tpucc.passes.rewriter import Rewriter


def once(rewriter: Rewriter, node: Node) -> bool:
    """relu(relu(x)) is relu(x). Says whether it has dealt with the node; any other stays."""
    if node.op != "relu" or rewriter.operands(node)[0].op != "relu":
        return False
    print("left out:", node.name)
    rewriter.alias(node, node.operands[0])
    return True


@dataclass(frozen=True)
class ReluOnce:
    name: ClassVar[str] = "relu-once"
    summary: ClassVar[str] = "computes no relu of a relu"

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, by=self.name).rewrite(once)
