"""Constant folding in training: only what every machine for floats computes to the same bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir.graph import Graph
from tpucc.ir.node import Node
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.floats import Ieee
from tpucc.ops.names import full, matmul, ones, zeros
from tpucc.passes.base import Context
from tpucc.passes.constant_folding import ConstantFolding
from tpucc.passes.rewriter import array_of, constant_of
from tpucc.passes.rules import Family, Rules, rule, value, variable


@dataclass(frozen=True)
class FoldExact(ConstantFolding):
    """Replaces an operator whose operands are all constants by its value, if it consists of single IEEE operations.

    The value of any other operator depends on the machine that trains, and compiling computes with NumPy. But a product with zeros, as in a
    recurrence's first step, is zeros on all of them.
    """

    name = "fold-exact"
    summary = "computes what depends on constants only, where all machines agree on it"

    def run(self, graph: Graph, context: Context) -> Graph:
        none, product = variable("none", _is_zero), Family(matmul.made, in_any_order=True)
        of_zeros = rule(
            "a product with zeros", product(none, value("other")), lambda m: m.constant(np.zeros(m.root.type.shape, np.float32))
        )
        return Rules(self.name, of_zeros).run(super().run(graph, context), context)

    def _may_fold(self, node: Node, values: list[AnyArray]) -> bool:
        """`zeros`, `ones` and `full` too: a constant of them all can be divided with the batch."""
        filled = zeros.made(node) or ones.made(node) or full.made(node)
        return (filled or super()._may_fold(node, values)) and isinstance(OPS[node.op].floats, Ieee)


def _is_zero(node: Node) -> bool:
    return constant_of(node) is not None and not array_of(node).any()
