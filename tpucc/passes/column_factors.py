"""Factors of columns: a product of an image with one factor for each channel, as batch normalisation leaves it, is a convolution.

The vector unit multiplies integers by integers. A constant of factors has one scale there, in which small factors have few steps, and the
sum after it rounds once more. A depthwise convolution of 1×1 multiplies channel by channel, too. Its weights have a scale for each channel,
so that every factor is exact but for the rounding of its scale to float32; the sum is its bias, and it rounds once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.ops import OPS
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.opdef import Boundary
from tpucc.passes.base import Context, Pass
from tpucc.passes.quotients import multiplies
from tpucc.passes.rewriter import Rewriter, as_columns, constant_of, is_pinned


@dataclass(frozen=True)
class ColumnFactors(Pass):
    """Rewrites `x * c`, where the device has an image [N, H, W, C] and c is one factor a channel, as `conv2d(x, k, groups=C)` with
    k = c as [1, 1, 1, C].

    Values of 16 bits stay: their integers are fine enough, and the vector unit has no convolutions of them. So do values whose scales the
    source gives, and products with one number for all channels, which are tables.
    """

    name = "column-factors"
    summary = "makes an image's product with a factor for each channel a depthwise convolution"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_rewrite) if context.format.has_exact_tables else graph


def _rewrite(rewriter: Rewriter, node: Node) -> bool:
    """Puts the convolution in the place of the product, if it is such a product."""
    if not (node.on_device and multiplies(node) and node.type.rank == 4) or _is_given(rewriter, node):
        return False
    operands = rewriter.operands(node)
    for x, constant in (operands, operands[::-1]):
        factors = _factors(constant, node.type)
        if factors is not None and x.type.shape == node.type.shape:
            attributes = Conv2dAttributes(groups=node.type.columns)
            rewriter.put(replace(node, op="conv2d", operands=(x.name, _kernel(rewriter, constant, factors)), attributes=attributes))
            return True
    return False


def _factors(constant: Node, type_: TensorType) -> Constant | None:
    """The constant as one factor a channel, if they aren't all one number."""
    value = constant_of(constant)
    columns = None if value is None else as_columns(value, type_)
    return columns if columns is not None and (columns.data != columns.data[0]).any() else None


def _kernel(rewriter: Rewriter, constant: Node, factors: Constant) -> str:
    """The name of the kernel, which all products with this constant share."""

    def make() -> str:
        value = Constant(factors.data.reshape(1, 1, 1, -1))
        return constant.name if value.shape == constant.type.shape else rewriter.constant(constant.name, value, constant.origin).name

    return rewriter.once(constant.name, make)


def _is_given(rewriter: Rewriter, node: Node) -> bool:
    """Whether the source says how the product, or what it multiplies, becomes integers."""
    near = (*rewriter.operands(node), *rewriter.graph.users[node.name])
    return is_pinned(node) or any(is_pinned(each) or isinstance(OPS[each.op].legalisation, Boundary) for each in near)
