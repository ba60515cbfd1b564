"""Bias fusion: a product and the constant added to each of its rows are one layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.ir import Constant, Node
from tpucc.ops import OPS, facts_of
from tpucc.ops.fused import Fused, fused_form
from tpucc.ops.names import constant
from tpucc.ops.opdef import Expression
from tpucc.passes.rewriter import Rewriter, array_of, columns_of, constant_of, is_product, is_written, obstacle
from tpucc.passes.rules import Match, Rule, called, columns, once, product, rule, rules_pass, total


@rules_pass("fuse-bias", "makes one operator of a product and the constant that is added to it", level=1)
def fuse_bias() -> Iterator[Rule]:
    """Rewrites `x @ w + b`, `b + x @ w` and `x @ w - b` to `linear(x, w, b)` where w and b are constants and the product has no other use.

    A convolution becomes `convolution(x, w, b)` likewise.

    The activation unit adds the bias to the int32 sums, so that the product is rounded once. A second constant is added to the first.
    """
    yield rule("a constant added to a product", total(once(called("product", product())), columns("added")), _with_bias, when=_takes_bias)


def _with_bias(m: Match) -> Expression:
    """`linear(x, w, b)` or `convolution(x, w, b)` in the place of a sum of a product and a constant."""
    # lab 2 begin: put `linear` in the place of a sum of a product and a constant
    form, attributes = fused_form(m.product.op, m.product.attributes)
    x, weights, *_ = m.rewriter.operands(m.product)
    return OPS[form].with_attributes(attributes, x, weights, _bias(m))
    # lab 2 end


def _takes_bias(m: Match) -> bool:
    """Whether the product has a layer that adds the constant, and the sum adds no axes to it."""
    return m.root.type.shape == m.product.type.shape and is_open(m.rewriter, m.product)


def is_open(rewriter: Rewriter, node: Node) -> bool:
    """Whether the node is a product with weights, without activation. Its weights may be pinned: they stay as they are, and the sums are
    rounded once."""
    if not is_product(node) or obstacle(node, rewriter.operands(node)):
        return False
    if isinstance(node.attributes, Fused) and node.attributes.activation:
        return False
    weights, *bias = rewriter.operands(node)[1:]
    constants = constant.made(weights) and all(constant_of(operand) is not None for operand in bias)
    return is_written(weights) or constants


def is_open_product(rewriter: Rewriter, node: Node) -> bool:
    """Whether the node is such a product that the root may take in, and whose weights aren't pinned: others may take their place."""
    weights = rewriter.operands(node)[1] if len(node.operands) > 1 else node
    return rewriter.is_free(node) and is_open(rewriter, node) and (is_written(weights) or constant_of(weights) is not None)


def _bias(m: Match) -> Node:
    """The bias as f32[N]: the added constant itself when it has that form already."""
    # lab 2 begin: add the constant to the bias that is there
    columns, present = columns_of(m.added, m.product.type), m.rewriter.operands(m.product)[2:]
    assert columns is not None
    _, sign = facts_of(m.root.op).signs
    if sign > 0 and not present and columns is constant_of(m.added):
        return m.added
    values = np.negative(columns.data) if sign < 0 else columns.data
    for bias in present:
        values = array_of(bias) + values
    return m.rewriter.constant(m.added.name, Constant(values), m.added.origin)
    # lab 2 end
