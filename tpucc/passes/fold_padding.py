"""Padding before a convolution becomes the convolution's own.

Both are zeros. A convolution's padding moves nothing, and a `pad` moves the whole image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.ir.graph import Graph
from tpucc.ops.conv2d import OP as conv2d
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.opdef import Expression
from tpucc.ops.pad import OP as pad
from tpucc.ops.pad import PadAttributes
from tpucc.ops.windows import MAX_STEP
from tpucc.passes.base import Context, Pass
from tpucc.passes.rules import Match, Rules, called, rule, unpinned, value


@dataclass(frozen=True)
class FoldPadding(Pass):
    """Rewrites `conv2d(pad(x, …), w)` to a `conv2d` of x with explicit padding, where only height and width are padded.

    A pad of a pad becomes one. Pools stay as they are: a maximum or an average isn't the same with zeros around.
    """

    name = "fold-padding"
    summary = "moves padding into the convolution after it"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return RULES.run(graph, context)


def _joined(m: Match) -> Expression:
    """One pad for two."""
    first, second = m.padded.attributes, m.root.attributes
    assert isinstance(first, PadAttributes)
    assert isinstance(second, PadAttributes)
    return pad(m.x, pads=tuple((a + c, b + d) for (a, b), (c, d) in zip(first.pads, second.pads, strict=True)))


def _taken_in(m: Match) -> Expression | None:
    """The convolution with the padding before it taken in; None when other axes are padded, or its padding would be too large.

    "same" stands for what it means on the padded image.
    """
    padded, attributes = m.padded.attributes, m.root.attributes
    assert isinstance(padded, PadAttributes)
    assert isinstance(attributes, Conv2dAttributes)
    batch, (top, bottom), (left, right), channels = padded.pads
    height, width = conv_axes(attributes, m.padded.type.shape, m.kernel.type.shape)
    sides = (top + height.before, bottom + height.after, left + width.before, right + width.after)
    if any((*batch, *channels)) or max(sides) > MAX_STEP:
        return None
    return conv2d.with_attributes(replace(attributes, padding=sides), m.x, m.kernel)


padded = called("padded", unpinned(pad(value("x"))))
RULES = Rules(
    "fold-padding",
    rule("a pad of a pad", pad(padded), _joined),
    rule("a convolution of a pad", conv2d(padded, value("kernel")), _taken_in),
)
