"""Views of products move behind what fuses with the product.

A reshape between a product and its bias or its activation keeps the two from becoming one layer, though it moves nothing: on the device
it is only another way to count the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ir import Node
from tpucc.passes.biases import OpenSums, biased, sums_of
from tpucc.passes.rewriter import as_reshape, is_pinned
from tpucc.passes.rules import Match, Rule, called, columns, function, once, rule, rules_pass, total, value, view


@rules_pass("sink-views", "moves a reshape after a product behind the bias or activation that follows", level=1, using=OpenSums)
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
    total = sums_of(m).add_bias(m.product, found)
    return as_reshape(m.moved(m.view, total), total.name)


def _below_function(m: Match) -> Node:
    """`reshape(f(p))` in the place of `f(reshape(p))`."""
    made = m.rewriter.again(m.root, m.product, same_values=True)
    return as_reshape(m.moved(m.view, made), made.name)


def _sinks(m: Match) -> bool:
    """Whether the reshape keeps the product's columns, and the product takes in what follows."""
    return not is_pinned(m.root) and m.view.type.columns == m.product.type.columns and sums_of(m).takes_bias(m.product)
