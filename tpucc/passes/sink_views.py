"""Views of products move behind what fuses with the product.

A reshape between a product and its bias or its activation keeps the two from becoming one layer, though it moves nothing: on the device
it is only another way to count the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph, Node
from tpucc.passes.base import Context, Pass
from tpucc.passes.biases import OpenSums, biased
from tpucc.passes.rewriter import as_reshape, is_function, is_pinned, is_view


@dataclass(frozen=True)
class SinkViews(Pass):
    """Rewrites `reshape(p) + b` to `reshape(p + b)` and `f(reshape(p))` to `reshape(f(p))`.

    Here p is a product with or without a bias, the reshape keeps its columns, and neither has another use.
    """

    name = "sink-views"
    summary = "moves a reshape after a product behind the bias or activation that follows"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return OpenSums(graph, self.name).rewrite(lambda sums, node: _sink_below_bias(sums, node) or _sink_below_function(sums, node))


def _sink_below_bias(sums: OpenSums, node: Node) -> bool:
    """Puts `reshape(p) + b` as `reshape(p + b)`, if the node is that."""
    found = biased(sums, node)
    product = None if found is None or is_pinned(node) else _behind_view(sums, found.value)
    if found is None or product is None or found.bias.type.rank > product.type.rank:
        return False
    _put_view(sums, node, found.value, sums.add_bias(product, found))
    return True


def _sink_below_function(sums: OpenSums, node: Node) -> bool:
    """Puts `f(reshape(p))` as `reshape(f(p))`, if the node is that."""
    if not is_function(node) or is_pinned(node):
        return False
    (view,) = sums.operands(node)
    product = _behind_view(sums, view)
    if product is None:
        return False
    type_ = replace(node.type, shape=product.type.shape)
    moved = sums.put(replace(node, name=sums.fresh(node.name), operands=(product.name,), type=type_))
    _put_view(sums, node, view, moved)
    return True


def _behind_view(sums: OpenSums, view: Node) -> Node | None:
    """The product that a reshape of rows reads; None if the node isn't such a view, or if either has another use."""
    if not is_view(view) or not sums.is_free(view):
        return None
    (product,) = sums.operands(view)
    return product if view.type.columns == product.type.columns and sums.takes_bias(product) else None


def _put_view(sums: OpenSums, node: Node, view: Node, moved: Node) -> None:
    """Puts a view of `moved` in the place of `node`."""
    sums.put(as_reshape(replace(view, name=node.name, type=node.type), moved.name), view)
