"""Constant folding in training: only what every machine for floats computes to the same bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.ops import OPS
from tpucc.ops.constant import OP as constant
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.floats import Ieee
from tpucc.passes.base import Context
from tpucc.passes.constant_folding import ConstantFolding
from tpucc.passes.rewriter import Rewriter, constant_of


@dataclass(frozen=True)
class FoldExact(ConstantFolding):
    """Replaces an operator whose operands are all constants by its value, if it consists of single IEEE operations.

    The value of any other operator depends on the machine that trains, and compiling computes with NumPy. But a product with zeros, as in a
    recurrence's first step, is zeros on all of them.
    """

    name = "fold-exact"
    summary = "computes what depends on constants only, where all machines agree on it"

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter = Rewriter(super().run(graph, context), self.name)
        for node in rewriter:
            if node.op == "matmul" and any(_is_zero(operand) for operand in rewriter.operands(node)):
                zeros = ConstantAttributes(Constant(np.zeros(node.type.shape, np.float32)))
                rewriter.put(constant.node(node.name, (), zeros, node.type, node.origin.by(self.name)))
            else:
                rewriter.put(node)
        return rewriter.build()

    def _may_fold(self, node: Node, values: list[Constant]) -> bool:
        """`zeros`, `ones` and `full` too: a constant of them all can be divided with the batch."""
        filled = node.op in ("zeros", "ones", "full")
        return (filled or super()._may_fold(node, values)) and isinstance(OPS[node.op].floats, Ieee)


def _is_zero(node: Node) -> bool:
    value = constant_of(node)
    return value is not None and not value.data.any()
