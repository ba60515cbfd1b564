"""Padding before a convolution becomes the convolution's own.

Both are zeros. A convolution's padding moves nothing, and a `pad` moves the whole image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph, Node
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.pad import PadAttributes
from tpucc.ops.windows import MAX_STEP
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, is_pinned


@dataclass(frozen=True)
class FoldPadding(Pass):
    """Rewrites `conv2d(pad(x, …), w)` to a `conv2d` of x with explicit padding, where only height and width are padded.

    A pad of a pad becomes one. Pools stay as they are: a maximum or an average isn't the same with zeros around.
    """

    name = "fold-padding"
    summary = "moves padding into the convolution after it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_fold)


def _fold(rewriter: Rewriter, node: Node) -> bool:
    """Puts the node in a form that reads what the `pad` before it reads, if it has one."""
    if not isinstance(node.attributes, Conv2dAttributes | PadAttributes):
        return False
    padded = rewriter.nodes[node.operands[0]]
    if not isinstance(padded.attributes, PadAttributes) or is_pinned(padded):
        return False
    if isinstance(node.attributes, PadAttributes):
        attributes: PadAttributes | Conv2dAttributes | None = _joined(padded.attributes, node.attributes)
    else:
        attributes = _taken_in(rewriter, node, node.attributes, padded.attributes)
    if attributes is None:
        return False
    rewriter.put(replace(node, operands=(padded.operands[0], *node.operands[1:]), attributes=attributes), padded)
    return True


def _joined(first: PadAttributes, second: PadAttributes) -> PadAttributes:
    return PadAttributes(tuple((a + c, b + d) for (a, b), (c, d) in zip(first.pads, second.pads, strict=True)))


def _taken_in(rewriter: Rewriter, node: Node, attributes: Conv2dAttributes, pad: PadAttributes) -> Conv2dAttributes | None:
    """The convolution's attributes with the padding before it taken in; None when other axes are padded, or its padding would be too large.

    "same" stands for what it means on the padded image.
    """
    batch, (top, bottom), (left, right), channels = pad.pads
    x, w = (operand.type.shape for operand in rewriter.operands(node))
    height, width = conv_axes(attributes, x, w)
    sides = (top + height.before, bottom + height.after, left + width.before, right + width.after)
    return replace(attributes, padding=sides) if not any((*batch, *channels)) and max(sides) <= MAX_STEP else None
