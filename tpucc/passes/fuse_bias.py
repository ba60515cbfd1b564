"""Bias fusion: a product and the constant added to each of its rows are one layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, Node
from tpucc.ops import facts_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.fused import Fused, fused_form
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, as_columns, constant_of, is_product, is_written, obstacle


@dataclass(frozen=True)
class FuseBias(Pass):
    """Rewrites `x @ w + b`, `b + x @ w` and `x @ w - b` to `linear(x, w, b)` where w and b are constants and the product has no other use.

    A convolution becomes `convolution(x, w, b)` likewise.

    The activation unit adds the bias to the int32 sums, so that the product is rounded once. A second constant is added to the first.
    """

    name = "fuse-bias"
    summary = "makes one operator of a product and the constant that is added to it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_fuse)


def _fuse(rewriter: Rewriter, node: Node) -> bool:
    """Puts `linear` in the place of a sum, if it is one of a product and a bias."""
    # lab 2 begin: put `linear` in the place of a sum of a product and a constant
    facts = facts_of(node.op)
    if not facts.signs:
        return False
    product, other = rewriter.operands(node)
    if facts.commutative(node.attributes) and not is_fusable(rewriter, product):
        product, other = other, product
    added = constant_of(other)
    if added is None or node.type.shape != product.type.shape or not is_fusable(rewriter, product):
        return False
    columns = as_columns(added, product.type)
    if columns is None:
        return False
    bias = _bias(rewriter, node, product, other, columns)
    operands = (*product.operands[:2], bias.name)
    op, attributes = fused_form(product.op, product.attributes)
    rewriter.put(Node(node.name, op, operands, attributes, node.type, node.origin), product)
    return True
    # lab 2 end


def is_fusable(rewriter: Rewriter, node: Node) -> bool:
    """Whether a bias or an activation may be fused into the node: a product with weights, without activation, read once, and not pinned.
    Its weights may be: they stay as they are, and the sums are rounded once."""
    if not is_product(node) or obstacle(node, rewriter.operands(node)):
        return False
    if isinstance(node.attributes, Fused) and node.attributes.activation:
        return False
    weights, *bias = rewriter.operands(node)[1:]
    constants = isinstance(weights.attributes, ConstantAttributes) and all(constant_of(operand) is not None for operand in bias)
    return rewriter.is_free(node) and (is_written(weights) or constants)


def is_open_product(rewriter: Rewriter, node: Node) -> bool:
    """Whether the node is such a product whose weights aren't pinned: others may take their place."""
    weights = rewriter.operands(node)[1] if len(node.operands) > 1 else node
    return is_fusable(rewriter, node) and (is_written(weights) or constant_of(weights) is not None)


def _bias(rewriter: Rewriter, node: Node, product: Node, other: Node, columns: Constant) -> Node:
    """The bias as f32[N]: the added constant itself when it has that form already."""
    # lab 2 begin: add the constant to the bias that is there
    present = [constant_of(rewriter.nodes[name]) for name in product.operands[2:]]
    _, sign = facts_of(node.op).signs
    if sign > 0 and not present and columns is constant_of(other):
        return other
    values = np.negative(columns.data) if sign < 0 else columns.data
    for bias in present:
        values = values if bias is None else bias.data + values
    return rewriter.constant(other.name, Constant(values), other.origin)
    # lab 2 end
