"""Images that are made larger by whole numbers become copies of their pixels.

The device has no instruction that picks pixels by a table, but it joins values along an axis of rows. Pixels each of which stands twice are
the image joined with itself along a new axis behind the width: `[N, H, W, 1, C]` twice is `[N, H, W, 2, C]`, which is `[N, H, 2 * W, C]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tpucc.ir import Node
from tpucc.ops.names import concat, reshape, resize
from tpucc.ops.opdef import Expression
from tpucc.ops.parts import Shape
from tpucc.passes.rewriter import is_pinned
from tpucc.passes.rules import Match, Rule, rule, rules_pass, value


@rules_pass("copy-pixels", "rewrites a resize by whole numbers as copies of pixels", level=1)
def copy_pixels() -> Iterator[Rule]:
    """Rewrites `resize` of the nearest pixels, larger by whole numbers, to reshapes and `concat` of a value with itself.

    Columns go first: then fewer rows are copied twice. At the edges of the device's work the host does both.
    """
    yield rule("a resize of the nearest pixels", resize(value("x"), mode="nearest"), _copied, when=lambda m: not is_pinned(m.root))


def _copied(m: Match) -> Expression | None:
    """The copies, in the shape of the result; None where the image doesn't grow by whole numbers."""
    images, rows, columns, _ = m.x.type.shape
    height, width = m.root.type.shape[1:3]
    if height % rows or width % columns:
        return None
    wide = _repeated(m, m.x, (images, rows, columns), width // columns)
    tall = _repeated(m, wide, (images, rows), height // rows)
    return reshape(tall, shape=m.root.type.shape)


def _repeated(m: Match, x: Node, leading: Shape, times: int) -> Node:
    """The value with each part at the leading indices repeated so many times."""
    if times == 1:
        return x
    apart = m.rewriter.reshape(x, (*leading, 1, x.type.rows // prod(leading), x.type.columns))
    return m.rewriter.add(concat(*[apart] * times, axis=len(leading)), m.root)
