"""Activation fusion: a product, or a sum of two values, and the function applied to it are one layer."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.graph import Graph, Node
from tpucc.ops import legalisation_of
from tpucc.ops.fused import Fused, fused_form, with_activation
from tpucc.ops.opdef import Arithmetic, Table
from tpucc.passes.base import Context, Pass
from tpucc.passes.fuse_bias import is_fusable
from tpucc.passes.rewriter import Rewriter, is_function


@dataclass(frozen=True)
class FuseActivation(Pass):
    """Rewrites a function of one value after a product to `linear` or `convolution` with that activation, where the product has no other
    use; after add, sub and mul to `arithmetic`.

    The activation unit applies it on the way to the unified buffer. A function that becomes a table needs the range of what it is
    applied to; the fused node keeps that range, as calibrated, in its attribute `pre`.
    """

    name = "fuse-activation"
    summary = "makes one operator of a product and the activation after it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_fuse)


def _fuse(rewriter: Rewriter, node: Node) -> bool:
    """Puts `linear` in the place of an activation, if it is one after a product."""
    # lab 2 begin: put `linear` in the place of a function of a product
    if not is_function(node):
        return False
    (before,) = rewriter.operands(node)
    form = _open_form(rewriter, before)
    if form is None:
        return False
    op, attributes = form
    pre = before.type.range if isinstance(legalisation_of(node.op), Table) else None
    fused = with_activation(attributes, node.op, node.attributes, pre)
    rewriter.put(Node(node.name, op, before.operands, fused, node.type, node.origin), before)
    return True
    # lab 2 end


def _open_form(rewriter: Rewriter, node: Node) -> tuple[str, Fused] | None:
    """The operator that takes in an activation after `node`, and its attributes before it does; None when there is none."""
    # lab 2 begin: say what takes in an activation
    if is_fusable(rewriter, node):
        return fused_form(node.op, node.attributes)
    alone = isinstance(legalisation_of(node.op), Arithmetic) and not isinstance(node.attributes, Fused) and rewriter.is_free(node)
    return fused_form(node.op, node.attributes) if alone else None
    # lab 2 end
