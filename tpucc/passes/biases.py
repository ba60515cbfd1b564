"""Where a constant that is added ends in a product: what the passes ask that bring biases and products together."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import Graph, Node
from tpucc.ops import facts_of
from tpucc.passes.fuse_bias import is_open_product
from tpucc.passes.rewriter import Rewriter, columns_of
from tpucc.passes.rules import Match


@dataclass(frozen=True, slots=True)
class Biased:
    """A value and the constant added to it or subtracted from it: `total` is `add(value, bias)` or `sub(value, bias)`."""

    total: Node
    value: Node
    bias: Node


def biased(rewriter: Rewriter, node: Node) -> Biased | None:
    """The node as a sum with a bias: a constant with one value a column, or one for all; None for other nodes."""
    facts = facts_of(node.op)
    if not facts.signs:
        return None
    value, bias = rewriter.operands(node)
    if facts.commutative(node.attributes) and columns_of(value, node.type) is not None:
        value, bias = bias, value
    is_biased = columns_of(bias, node.type) is not None and value.type.shape == node.type.shape
    return Biased(node, value, bias) if is_biased else None


class OpenSums(Rewriter):
    """Knows of the nodes that a pass has put which of them take a bias: open products, and these with biases already.

    A long chain of sums is walked once: every node is noted as it is put, and answers for those before it.
    """

    def __init__(self, graph: Graph, by: str) -> None:
        super().__init__(graph, by)
        self._sums: set[str] = set()

    def enter(self, node: Node) -> Node:
        """Adds a node to the new graph, and notes what it is."""
        made = super().enter(node)
        found = biased(self, made)
        if found is not None and self.takes_bias(found.value):
            self._sums.add(made.name)
        return made

    def add_bias(self, product: Node, like: Biased) -> Node:
        """Adds `product + bias` or `product - bias` to the new graph, as `like` has it; `product` must take one."""
        name, type_ = self.fresh(product.name), product.type.plain()
        made = Node(name, like.total.op, (product.name, like.bias.name), like.total.attributes, type_, like.total.origin)
        self._sums.add(name)
        return self.put(made)

    def takes_bias(self, node: Node) -> bool:
        """Whether a constant added to the node ends in a product, and nothing else reads the node."""
        if node.name not in self._sums:
            return is_open_product(self, node)
        return self.is_free(node)


def sums_of(match: Match) -> OpenSums:
    """The rewriter of a match, in a pass that uses this one."""
    assert isinstance(match.rewriter, OpenSums)
    return match.rewriter
