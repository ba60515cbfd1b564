"""Constants that are added move to the product of the sum.

The activation unit adds a bias to the sums of a product at no cost. In `x @ k + h @ r + b`, where x @ k isn't a product any more (all
steps of a recurrent network share one), `b` would be added by the vector unit; in `x @ k + (h @ r + b)` it is the product's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tpucc.ir.graph import Graph, Node
from tpucc.ops import facts_of
from tpucc.passes.base import Context
from tpucc.passes.biases import Biased, OpenSums, biased
from tpucc.passes.rewriter import Rewriter, is_pinned


@dataclass(frozen=True)
class ReassociateBias:
    """Moves constants with one value a column to a product that takes them in.

    | before | after |
    |---|---|
    | `(a + p) + b`, `(a + p) - b`, `(p - a) + b` | `a + (p + b)`, `a + (p - b)`, `(p + b) - a` |
    | `(a + b) + p`, `(a - b) + p`, where a takes no bias | `a + (p + b)`, `a + (p - b)` |

    Here p is a product with or without a bias, and neither it nor the inner sum has another use. Of two such products the right one takes
    the constant. Sums are reassociated in float32, so that results may differ in the last bits.
    """

    name: ClassVar[str] = "reassociate-bias"
    summary: ClassVar[str] = "moves constants that are added to a sum to a product in it"
    level: ClassVar[int] = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        mover = _Mover(Rewriter(graph, self.name))
        for node in mover.rewriter:
            mover.visit(node)
        return mover.rewriter.build()


class _Mover:
    """Regroups one sum after the other."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        self._sums = OpenSums(rewriter)

    def visit(self, node: Node) -> None:
        if not (self._past_outer(node) or self._past_inner(node)):
            self._sums.put(node)

    def _past_outer(self, node: Node) -> bool:
        """`(a + p) + b`: the outer constant goes to the product of the inner sum."""
        outer = biased(self.rewriter, node)
        if outer is None or not self._is_free_sum(outer.value, node) or self._sums.takes_bias(outer.value):
            return False
        inner = outer.value
        added = [x for x, sign in zip(self.rewriter.operands(inner), facts_of(inner.op).signs, strict=True) if sign > 0]
        for product in reversed(added):
            if self._takes_bias(product, node):
                made = self._sums.add_bias(product, outer)
                operands = tuple(made.name if name == product.name else name for name in inner.operands)
                self._sums.put(replace(node, op=inner.op, operands=operands), inner)
                return True
        return False

    def _past_inner(self, node: Node) -> bool:
        """`(a + b) + p`: the constants of one side go to the product that is the other."""
        if not facts_of(node.op).signs or not facts_of(node.op).commutative(node.attributes):
            return False
        left, right = self.rewriter.operands(node)
        for total, product in ((left, right), (right, left)):
            if self._takes_bias(product, node) and (sums := self._biased_sums(total, node)):
                for found in reversed(sums):
                    product = self._sums.add_bias(product, found)
                operands = (sums[-1].value.name, product.name)
                self._sums.put(replace(node, operands=operands), *(found.total for found in sums))
                return True
        return False

    def _takes_bias(self, product: Node, node: Node) -> bool:
        return product.type.shape == node.type.shape and self._sums.takes_bias(product)

    def _biased_sums(self, total: Node, reader: Node) -> list[Biased]:
        """Of `(a + b) + c` both sums, the outer first, where b and c are constants and a takes none."""
        found: list[Biased] = []
        while self._is_free_sum(total, reader) and not self._sums.takes_bias(total):
            if (inner := biased(self.rewriter, total)) is None:
                break
            found.append(inner)
            total = inner.value
        return found

    def _is_free_sum(self, node: Node, reader: Node) -> bool:
        """Whether the operands of a sum may be regrouped with those of its reader."""
        free = self.rewriter.reads(node) == 1 and not is_pinned(node)
        return free and bool(facts_of(node.op).signs) and node.type.shape == reader.type.shape
