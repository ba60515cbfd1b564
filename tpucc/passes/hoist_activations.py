"""Activations move from behind a pool to the product before it.

A function that never falls keeps the order of its values: the largest of them before is the largest after, `f(max(a, b))` is
`max(f(a), f(b))`. Next to the product the activation unit applies it on the way, at no cost; behind the pool it is a layer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ir import Node
from tpucc.ops import facts_of, legalisation_of
from tpucc.ops.opdef import Pooling
from tpucc.passes.biases import OpenSums, sums_of
from tpucc.passes.rules import Family, Match, Rule, called, function, once, rule, rules_pass, value


@rules_pass("hoist-activations", "moves the activation after a max_pool before it, to the product there", level=2, using=OpenSums)
def hoist_activations() -> Iterator[Rule]:
    """Rewrites `f(max_pool(x))` to `max_pool(f(x))` where f never falls, x is a product with or without a bias, and neither x nor the
    pool has another use.
    """
    largest = Family(lambda node: legalisation_of(node.op) == Pooling("max"))
    yield rule("a function of a pool", function(once(called("pool", largest(value("x"))))), _hoisted, when=_keeps_order)


def _hoisted(m: Match) -> Node:
    """The pool of the function. gelu, silu and hard_swish fall somewhere."""
    return m.moved(m.pool, m.rewriter.again(m.root, m.x))


def _keeps_order(m: Match) -> bool:
    """Whether the function never falls, and becomes the activation of what the pool reads."""
    return facts_of(m.root.op).monotone(m.root.attributes) and sums_of(m).takes_bias(m.x)
