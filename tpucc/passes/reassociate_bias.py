"""Constants that are added move to the product of the sum.

The activation unit adds a bias to the sums of a product at no cost. In `x @ k + h @ r + b`, where x @ k isn't a product any more (all
steps of a recurrent network share one), `b` would be added by the vector unit; in `x @ k + (h @ r + b)` it is the product's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph, Node
from tpucc.ops import facts_of
from tpucc.passes.base import Context, Pass
from tpucc.passes.biases import Biased, OpenSums, biased


@dataclass(frozen=True)
class ReassociateBias(Pass):
    """Moves constants with one value a column to a product that takes them in.

    | before | after |
    |---|---|
    | `(a + p) + b`, `(a + p) - b`, `(p - a) + b` | `a + (p + b)`, `a + (p - b)`, `(p + b) - a` |
    | `(a + b) + p`, `(a - b) + p`, where a takes no bias | `a + (p + b)`, `a + (p - b)` |

    Here p is a product with or without a bias, and neither it nor the inner sum has another use. Of two such products the right one takes
    the constant. Sums are reassociated in float32, so that results may differ in the last bits.
    """

    name = "reassociate-bias"
    summary = "adds the constant of a sum to a product in that sum, as its bias"
    level = 2

    def run(self, graph: Graph, context: Context) -> Graph:
        return _Mover(graph, self.name).rewrite(_Mover.move)


class _Mover(OpenSums):
    """Regroups one sum after the other."""

    def move(self, node: Node) -> bool:
        return self._past_outer(node) or self._past_inner(node)

    def _past_outer(self, node: Node) -> bool:
        """`(a + p) + b`: the outer constant goes to the product of the inner sum."""
        outer = biased(self, node)
        if outer is None or not self._is_free_sum(outer.value, node) or self.takes_bias(outer.value):
            return False
        inner = outer.value
        added = [x for x, sign in zip(self.operands(inner), facts_of(inner.op).signs, strict=True) if sign > 0]
        for product in reversed(added):
            if self._takes_bias(product, node):
                made = self.add_bias(product, outer)
                operands = tuple(made.name if name == product.name else name for name in inner.operands)
                self.put(replace(node, op=inner.op, operands=operands), inner)
                return True
        return False

    def _past_inner(self, node: Node) -> bool:
        """`(a + b) + p`: the constants of one side go to the product that is the other."""
        if not facts_of(node.op).signs or not facts_of(node.op).commutative(node.attributes):
            return False
        left, right = self.operands(node)
        for total, product in ((left, right), (right, left)):
            if self._takes_bias(product, node) and (sums := self._biased_sums(total, node)):
                for found in reversed(sums):
                    product = self.add_bias(product, found)
                operands = (sums[-1].value.name, product.name)
                self.put(replace(node, operands=operands), *(found.total for found in sums))
                return True
        return False

    def _takes_bias(self, product: Node, node: Node) -> bool:
        return product.type.shape == node.type.shape and self.takes_bias(product)

    def _biased_sums(self, total: Node, reader: Node) -> list[Biased]:
        """Of `(a + b) + c` both sums, the outer first, where b and c are constants and a takes none."""
        found: list[Biased] = []
        while self._is_free_sum(total, reader) and not self.takes_bias(total):
            if (inner := biased(self, total)) is None:
                break
            found.append(inner)
            total = inner.value
        return found

    def _is_free_sum(self, node: Node, reader: Node) -> bool:
        """Whether the operands of a sum may be regrouped with those of its reader."""
        return self.is_free(node) and bool(facts_of(node.op).signs) and node.type.shape == reader.type.shape
