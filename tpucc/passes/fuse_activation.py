"""Activation fusion: a product and the function applied to it are one layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tpucc.ir.graph import Graph, Node
from tpucc.ops import OPS
from tpucc.ops.linear import LinearAttributes, with_activation
from tpucc.ops.opdef import Clamp, Table
from tpucc.passes.base import Context
from tpucc.passes.fuse_bias import is_open_product
from tpucc.passes.rewriter import Rewriter


@dataclass(frozen=True)
class FuseActivation:
    """Rewrites a function of one value after a product to `linear` with that activation, where the product has no other use.

    The activation unit applies it on the way to the unified buffer. A function that becomes a table needs the range of what it is
    applied to; the fused node keeps that range, as calibrated, in its attribute `pre`.
    """

    name: ClassVar[str] = "fuse-activation"
    summary: ClassVar[str] = "fuses the activation after a product into it"
    level: ClassVar[int] = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        rewriter = Rewriter(graph, self.name)
        for node in rewriter:
            if not _fuse(rewriter, node):
                rewriter.put(node)
        return rewriter.build()


def _fuse(rewriter: Rewriter, node: Node) -> bool:
    """Puts `linear` in the place of an activation, if it is one after a product."""
    legalisation = OPS[node.op].legalisation if node.op in OPS else None
    if not isinstance(legalisation, Table | Clamp):
        return False
    (product,) = rewriter.operands(node)
    if not is_open_product(rewriter, product):
        return False
    before = product.attributes if isinstance(product.attributes, LinearAttributes) else LinearAttributes()
    pre = product.type.range if isinstance(legalisation, Table) else None
    attributes = with_activation(before, node.op, node.attributes, pre)
    rewriter.put(Node(node.name, "linear", product.operands, attributes, node.type, node.origin), product)
    return True
