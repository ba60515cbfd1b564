"""Constant folding in training: only what every machine for floats computes to the same bits."""

from __future__ import annotations

import numpy as np

from tpucc.ir import Graph, Node
from tpucc.ops import OPS
from tpucc.ops.names import full, matmul, ones, zeros
from tpucc.ops.opdef import Ieee
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.constant_folding import LARGEST, folding, may_fold
from tpucc.passes.rewriter import array_of, constant_of
from tpucc.passes.rules import Rules, in_any_order, rule, value, variable


@graph_pass("fold-exact", "computes what depends on constants only, where all machines agree on it", level=0)
def fold_exact(graph: Graph, context: Context) -> Graph:
    """Replaces an operator whose operands are all constants by its value, if it consists of single IEEE operations.

    The value of any other operator depends on the machine that trains, and compiling computes with NumPy. But a product with zeros, as in a
    recurrence's first step, is zeros on all of them.
    """
    product = in_any_order(matmul)(variable("none", _is_zero), value("other"))
    of_zeros = rule("a product with zeros", product, lambda m: m.constant(np.zeros(m.root.type.shape, np.float32)))
    return Rules("fold-exact", of_zeros).run(folding("fold-exact", _folds).run(graph, context), context)


def _folds(node: Node, size: int) -> bool:
    """Whether all machines agree on the value. `zeros`, `ones` and `full` too: a constant of them all can be divided with the batch."""
    filled = zeros.made(node) or ones.made(node) or full.made(node)
    return (filled or may_fold(node, max(size, LARGEST))) and isinstance(OPS[node.op].floats, Ieee)


def _is_zero(node: Node) -> bool:
    return constant_of(node) is not None and not array_of(node).any()
