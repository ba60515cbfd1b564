"""Activation fusion: a product, or a sum of two values, and the function applied to it are one layer."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ops import OPS, legalisation_of
from tpucc.ops.fused import Fused, fused_form, with_activation
from tpucc.ops.opdef import Arithmetic, Expression, Table
from tpucc.passes.fuse_bias import is_open
from tpucc.passes.rules import Family, Match, Rule, called, function, once, product, rule, rules_pass


@rules_pass("fuse-activation", "makes one operator of a product and the activation after it", level=1)
def fuse_activation() -> Iterator[Rule]:
    """Rewrites a function of one value after a product to `linear` or `convolution` with that activation, where the product has no other
    use; after add, sub and mul to `arithmetic`.

    The activation unit applies it on the way to the unified buffer. A function that becomes a table needs the range of what it is
    applied to; the fused node keeps that range, as calibrated, in its attribute `pre`.
    """
    # functions of two values that have no activation yet
    arithmetic = Family(lambda op: isinstance(legalisation_of(op), Arithmetic), when=lambda node: not isinstance(node.attributes, Fused))
    after_product = function(once(called("before", product())))
    yield rule("a function of a product", after_product, _activated, when=lambda m: is_open(m.rewriter, m.before))
    yield rule("a function of two values' sum or product", function(once(called("before", arithmetic()))), _activated)


def _activated(m: Match) -> Expression:
    """The operator before a function, with the function as its activation."""
    # lab 2 begin: put `linear` in the place of a function of a product
    form, attributes = fused_form(m.before.op, m.before.attributes)
    pre = m.before.type.range if isinstance(legalisation_of(m.root.op), Table) else None
    fused = with_activation(attributes, m.root.op, m.root.attributes, pre)
    return OPS[form].with_attributes(fused, *m.rewriter.operands(m.before))
    # lab 2 end
