"""Padding before a convolution becomes the convolution's own.

Both are zeros. A convolution's padding moves nothing, and a `pad` moves the whole image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.ops.conv2d import conv_axes
from tpucc.ops.names import conv2d, pad
from tpucc.ops.opdef import Expression
from tpucc.ops.windows import MAX_STEP
from tpucc.passes.rules import Match, Rule, called, rule, rules_pass, unpinned, value


@rules_pass("fold-padding", "moves padding into the convolution after it", level=1)
def fold_padding() -> Iterator[Rule]:
    """Rewrites `conv2d(pad(x, …), w)` to a `conv2d` of x with explicit padding, where only height and width are padded.

    A pad of a pad becomes one. Pools stay as they are: a maximum or an average isn't the same with zeros around.
    """
    padded = called("padded", unpinned(pad(value("x"))))
    yield rule("a pad of a pad", pad(padded), _joined)
    yield rule("a convolution of a pad", conv2d(padded, value("kernel")), _taken_in)


def _joined(m: Match) -> Expression:
    """One pad for two."""
    both = zip(pad.attributes_of(m.padded).pads, pad.attributes_of(m.root).pads, strict=True)
    return pad(m.x, pads=tuple((a + c, b + d) for (a, b), (c, d) in both))


def _taken_in(m: Match) -> Expression | None:
    """The convolution with the padding before it taken in; None when other axes are padded, or its padding would be too large.

    "same" stands for what it means on the padded image.
    """
    attributes = conv2d.attributes_of(m.root)
    batch, (top, bottom), (left, right), channels = pad.attributes_of(m.padded).pads
    height, width = conv_axes(attributes, m.padded.type.shape, m.kernel.type.shape)
    sides = (top + height.before, bottom + height.after, left + width.before, right + width.after)
    if any((*batch, *channels)) or max(sides) > MAX_STEP:
        return None
    return conv2d.with_attributes(replace(attributes, padding=sides), m.x, m.kernel)
