"""Constants that are added move to the product of the sum.

The activation unit adds a bias to the sums of a product at no cost. In `x @ k + h @ r + b`, where x @ k isn't a product any more (all
steps of a recurrent network share one), `b` would be added by the vector unit; in `x @ k + (h @ r + b)` it is the product's.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ir import Node
from tpucc.ops import facts_of
from tpucc.ops.opdef import Expression
from tpucc.passes.biases import Biased, OpenSums, biased, sums_of
from tpucc.passes.rules import Family, Match, Rule, applied, called, columns, once, rule, rules_pass, total, value


@rules_pass("reassociate-bias", "adds the constant of a sum to a product in that sum, as its bias", level=2, using=OpenSums)
def reassociate_bias() -> Iterator[Rule]:
    """Moves constants with one value a column to a product that takes them in.

    | before | after |
    |---|---|
    | `(a + p) + b`, `(a + p) - b`, `(p - a) + b` | `a + (p + b)`, `a + (p - b)`, `(p + b) - a` |
    | `(a + b) + p`, `(a - b) + p`, where a takes no bias | `a + (p + b)`, `a + (p - b)` |

    Here p is a product with or without a bias, and neither it nor the inner sum has another use. Of two such products the right one takes
    the constant. Sums are reassociated in float32, so that results may differ in the last bits.
    """
    # sums whose operands may be exchanged
    exchangeable = Family(lambda node: bool(facts_of(node.op).signs) and facts_of(node.op).commutative(node.attributes))
    yield rule("a constant added to a sum with a product", total(once(called("inner", total())), columns("bias")), _past_outer)
    yield rule("a product added to a sum with a constant", exchangeable(value("inner"), value("product")), _past_inner)


def _past_outer(m: Match) -> Expression | None:
    """`(a + p) + b`: the outer constant goes to the product of the inner sum."""
    sums, outer = sums_of(m), biased(m.rewriter, m.root)
    if outer is None or m.inner.type.shape != m.root.type.shape or sums.takes_bias(m.inner):
        return None
    operands = sums.operands(m.inner)
    added = [x for x, sign in zip(operands, facts_of(m.inner.op).signs, strict=True) if sign > 0]
    for product in reversed(added):
        if _takes_bias(m, product):
            made = sums.add_bias(product, outer)
            return applied(m.inner, *(made if each.name == product.name else each for each in operands))
    return None


def _past_inner(m: Match) -> Expression | None:
    """`(a + b) + p`: the constants of one side go to the product that is the other."""
    if not _takes_bias(m, m.product) or not (found := _biased_sums(m)):
        return None
    product = m.product
    for each in reversed(found):
        product = sums_of(m).add_bias(product, each)
    m.further.extend(each.total for each in found)
    return applied(m.root, found[-1].value, product)


def _takes_bias(m: Match, product: Node) -> bool:
    return product.type.shape == m.root.type.shape and sums_of(m).takes_bias(product)


def _biased_sums(m: Match) -> list[Biased]:
    """Of `(a + b) + c` both sums, the outer first, where b and c are constants and a takes none."""
    found: list[Biased] = []
    total = m.inner
    while _is_free_sum(m, total) and not sums_of(m).takes_bias(total) and (inner := biased(m.rewriter, total)) is not None:
        found.append(inner)
        total = inner.value
    return found


def _is_free_sum(m: Match, node: Node) -> bool:
    """Whether the operands of a sum may be regrouped with those of the root."""
    return m.rewriter.is_free(node) and bool(facts_of(node.op).signs) and node.type.shape == m.root.type.shape
