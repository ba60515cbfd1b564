"""Passes that bring constants and functions to the product before them, where the activation unit adds and applies them at no cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpucc.ir import Node
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Expression, Pooling
from tpucc.passes.fuse_bias import is_open_product
from tpucc.passes.rewriter import Rewriter, as_reshape, columns_of, is_pinned
from tpucc.passes.rules import Family, Match, Rule, applied, called, columns, function, once, rule, rules_pass, total, value, view


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


def takes_bias(rewriter: Rewriter, node: Node) -> bool:
    """Whether a constant added to the node ends in a product, maybe past other constants, and nothing else reads what lies between."""
    while (found := biased(rewriter, node)) is not None and rewriter.is_free(node):
        node = found.value
    return is_open_product(rewriter, node)


def with_bias(rewriter: Rewriter, product: Node, like: Biased) -> Node:
    """Adds `product + bias` or `product - bias` to the new graph, as `like` has it; `product` must take one."""
    name, type_ = rewriter.fresh(product.name), product.type.plain()
    return rewriter.put(Node(name, like.total.op, (product.name, like.bias.name), like.total.attributes, type_, like.total.origin))


# Constants that are added move to the product of the sum.
#
# The activation unit adds a bias to the sums of a product at no cost. In `x @ k + h @ r + b`, where x @ k isn't a product any more (all
# steps of a recurrent network share one), `b` would be added by the vector unit; in `x @ k + (h @ r + b)` it is the product's.


@rules_pass("reassociate-bias", "adds the constant of a sum to a product in that sum, as its bias", level=2)
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
    exchangeable = Family(total.holds, when=lambda node: facts_of(node.op).commutative(node.attributes))
    yield rule("a constant added to a sum with a product", total(once(called("inner", total())), columns("bias")), _past_outer)
    yield rule("a product added to a sum with a constant", exchangeable(value("inner"), value("product")), _past_inner)


def _past_outer(m: Match) -> Expression | None:
    """`(a + p) + b`: the outer constant goes to the product of the inner sum."""
    outer = biased(m.rewriter, m.root)
    if outer is None or m.inner.type.shape != m.root.type.shape or takes_bias(m.rewriter, m.inner):
        return None
    operands = m.rewriter.operands(m.inner)
    added = [x for x, sign in zip(operands, facts_of(m.inner.op).signs, strict=True) if sign > 0]
    for product in reversed(added):
        if _takes_bias(m, product):
            made = with_bias(m.rewriter, product, outer)
            return applied(m.inner, *(made if each.name == product.name else each for each in operands))
    return None


def _past_inner(m: Match) -> Expression | None:
    """`(a + b) + p`: the constants of one side go to the product that is the other."""
    if not _takes_bias(m, m.product) or not (found := _biased_sums(m)):
        return None
    product = m.product
    for each in reversed(found):
        product = with_bias(m.rewriter, product, each)
    m.further.extend(each.total for each in found)
    return applied(m.root, found[-1].value, product)


def _takes_bias(m: Match, product: Node) -> bool:
    return product.type.shape == m.root.type.shape and takes_bias(m.rewriter, product)


def _biased_sums(m: Match) -> list[Biased]:
    """Of `(a + b) + c` both sums, the outer first, where b and c are constants and a takes none."""
    found: list[Biased] = []
    total = m.inner
    while _is_free_sum(m, total) and not takes_bias(m.rewriter, total) and (inner := biased(m.rewriter, total)) is not None:
        found.append(inner)
        total = inner.value
    return found


def _is_free_sum(m: Match, node: Node) -> bool:
    """Whether the operands of a sum may be regrouped with those of the root."""
    return m.rewriter.is_free(node) and bool(facts_of(node.op).signs) and node.type.shape == m.root.type.shape


# Views of products move behind what fuses with the product.
#
# A reshape between a product and its bias or its activation keeps the two from becoming one layer, though it moves nothing: on the device
# it is only another way to count the same rows.


@rules_pass("sink-views", "moves a reshape after a product behind the bias or activation that follows", level=1)
def sink_views() -> Iterator[Rule]:
    """Rewrites `reshape(p) + b` to `reshape(p + b)` and `f(reshape(p))` to `reshape(f(p))`.

    Here p is a product with or without a bias, the reshape keeps its columns, and neither has another use.
    """
    viewed = once(called("view", view(value("product"))))
    yield rule("a bias behind a reshape", total(viewed, columns("bias")), _below_bias, when=_sinks)
    yield rule("a function behind a reshape", function(viewed), _below_function, when=_sinks)


def _below_bias(m: Match) -> Node | None:
    """`reshape(p + b)` in the place of `reshape(p) + b`."""
    found = biased(m.rewriter, m.root)
    if found is None or found.bias.type.rank > m.product.type.rank:
        return None
    total = with_bias(m.rewriter, m.product, found)
    return as_reshape(m.moved(m.view, total), total.name)


def _below_function(m: Match) -> Node:
    """`reshape(f(p))` in the place of `f(reshape(p))`."""
    made = m.rewriter.again(m.root, m.product, same_values=True)
    return as_reshape(m.moved(m.view, made), made.name)


def _sinks(m: Match) -> bool:
    """Whether the reshape keeps the product's columns, and the product takes in what follows."""
    return not is_pinned(m.root) and m.view.type.columns == m.product.type.columns and takes_bias(m.rewriter, m.product)


# Activations move from behind a pool to the product before it.
#
# A function that never falls keeps the order of its values: the largest of them before is the largest after, `f(max(a, b))` is
# `max(f(a), f(b))`. Next to the product the activation unit applies it on the way, at no cost; behind the pool it is a layer of its own.


@rules_pass("hoist-activations", "moves the activation after a max_pool before it, to the product there", level=2)
def hoist_activations() -> Iterator[Rule]:
    """Rewrites `f(max_pool(x))` to `max_pool(f(x))` where f never falls, x is a product with or without a bias, and neither x nor the
    pool has another use.
    """
    largest = Family(lambda op: legalisation_of(op) == Pooling("max"))
    yield rule("a function of a pool", function(once(called("pool", largest(value("x"))))), _hoisted, when=_keeps_order)


def _hoisted(m: Match) -> Node:
    """The pool of the function. gelu, silu and hard_swish fall somewhere."""
    return m.moved(m.pool, m.rewriter.again(m.root, m.x))


def _keeps_order(m: Match) -> bool:
    """Whether the function never falls, and becomes the activation of what the pool reads."""
    return facts_of(m.root.op).monotone(m.root.attributes) and takes_bias(m.rewriter, m.x)
