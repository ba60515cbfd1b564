"""Factors of columns: a product of an image with one factor for each channel, as batch normalisation leaves it, is a convolution.

The vector unit multiplies integers by integers. A constant of factors has one scale there, in which small factors have few steps, and the
sum after it rounds once more. A depthwise convolution of 1×1 multiplies channel by channel, too. Its weights have a scale for each channel,
so that every factor is exact but for the rounding of its scale to float32; the sum is its bias, and it rounds once.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ir import Constant, Node
from tpucc.ops import OPS
from tpucc.ops.names import conv2d
from tpucc.ops.opdef import Boundary, Expression
from tpucc.passes.device_work import multiplies
from tpucc.passes.rewriter import columns_of, is_pinned
from tpucc.passes.rules import Family, Match, Rule, columns, rule, rules_pass, value


@rules_pass("column-factors", "makes an image's product with a factor for each channel a depthwise convolution", level=1)
def column_factors() -> Iterator[Rule]:
    """Rewrites `x * c`, where the device has an image [N, H, W, C] and c is one factor a channel, as `conv2d(x, k, groups=C)` with
    k = c as [1, 1, 1, C].

    Values of 16 bits stay: their integers are fine enough, and the vector unit has no convolutions of them. So do values whose scales the
    source gives, and products with one number for all channels, which are tables.
    """
    factor = Family(multiplies)(value("x"), columns("factors"))
    yield rule("a factor for each channel of an image", factor, _convolution, when=_is_image)


def _convolution(m: Match) -> Expression | None:
    """The convolution; its kernel is shared by all products with this constant. None where the factors are all one number."""
    factors = columns_of(m.factors, m.root.type)
    if factors is None or not (factors.data != factors.data[0]).any():
        return None

    def kernel() -> Node:
        value = Constant(factors.data.reshape(1, 1, 1, -1))
        same = value.shape == m.factors.type.shape
        return m.factors if same else m.rewriter.constant(m.factors.name, value, m.factors.origin)

    return conv2d(m.x, m.rewriter.once(m.factors.name, kernel), groups=m.root.type.columns)


def _is_image(m: Match) -> bool:
    """Whether the device has both images, and the source doesn't say how the product, or what it multiplies, becomes integers."""
    if not m.context.format.has_exact_tables or not m.root.on_device or m.root.type.rank != 4 or m.x.type.shape != m.root.type.shape:
        return False
    near = (*m.rewriter.operands(m.root), *m.rewriter.graph.users[m.root.name])
    return not is_pinned(m.root) and not any(is_pinned(each) or isinstance(OPS[each.op].legalisation, Boundary) for each in near)
