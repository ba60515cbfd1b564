"""A product of some of a value's lanes becomes a product of all of them, with weights of zero for the others.

The device picks lanes by a product of their own. But the tile that multiplies them has room for the lanes beside them in the same column
block, and multiplying those by zero costs nothing. So grouped convolutions read their channels where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.ir import Constant, Node, TensorType
from tpucc.ops.fused import Fused
from tpucc.ops.names import slice as slice_
from tpucc.ops.opdef import Expression
from tpucc.ops.slice import SliceAttributes, as_slice
from tpucc.passes.rewriter import after_products, array_of, is_pinned, is_product
from tpucc.passes.rules import Family, Match, Rule, applied, constant, rule, rules_pass, variable


@rules_pass("fold-slices", "replaces slices of a product's input columns by weights of zero for the other columns", level=2)
def fold_slices() -> Iterator[Rule]:
    """Rewrites `x[..., a:b] @ w` to `x @ w'`, and convolutions likewise, where w' has the rows of w from row a on and zeros elsewhere;
    `x[..., a:b:s]` too.

    Only values that follow a product are worth it, for the host slices its own for nothing; and only lanes that lie in no more column
    blocks of x than they would fill by themselves.
    """
    unfused = Family(lambda node: is_product(node) and not isinstance(node.attributes, Fused))
    part = variable("part", lambda node: slice_.made(node) and not is_pinned(node))
    yield rule("a product of some lanes", unfused(part, constant("weights")), _without_slice, when=_is_worthwhile)


def _without_slice(m: Match) -> Expression | None:
    """The product of all lanes; None where the slice before it isn't one of lanes that are worth it."""
    (x,), weights = m.rewriter.operands(m.part), array_of(m.weights)
    lanes = _lanes(slice_.attributes_of(m.part), x.type, m.context.target.mxu)
    if lanes is None or weights.shape[-2] != m.part.type.columns:  # a kernel in groups has fewer rows than lanes
        return None

    def widened() -> Node:
        data = np.zeros((*weights.shape[:-2], x.type.columns, weights.shape[-1]), np.float32)
        data[..., lanes, :] = weights
        return m.rewriter.constant(m.weights.name, Constant(data), m.weights.origin)

    return applied(m.root, x, m.rewriter.once((m.part.name, m.weights.name), widened))


def _is_worthwhile(m: Match) -> bool:
    """Whether the slice is one of what follows a product."""
    return m.part.name in m.rewriter.once("after products", lambda: after_products(m.rewriter.graph))


def _lanes(part: SliceAttributes, x: TensorType, mxu: int) -> slice | None:
    """The lanes that a slice takes of all rows of x, when they lie in no more column blocks than they would fill."""
    *rows, lanes = part.ranges or (range(0),)
    if not lanes or rows != [range(size) for size in x.shape[:-1]] or part.squeeze:
        return None
    blocks = max(lanes) // mxu - min(lanes) // mxu + 1
    return as_slice(lanes) if blocks <= -(-len(lanes) // mxu) else None
