"""Images that are made larger by whole numbers become copies of their pixels.

The device has no instruction that picks pixels by a table, but it joins values along an axis of rows. Pixels each of which stands twice are
the image joined with itself along a new axis behind the width: `[N, H, W, 1, C]` twice is `[N, H, W, 2, C]`, which is `[N, H, 2 * W, C]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tpucc.ir.graph import Graph, Node
from tpucc.ops.concat import ConcatAttributes
from tpucc.ops.parts import Shape
from tpucc.ops.resize import ResizeAttributes
from tpucc.passes.base import Context, Pass
from tpucc.passes.rewriter import Rewriter, as_reshape, is_pinned


@dataclass(frozen=True)
class CopyPixels(Pass):
    """Rewrites `resize` of the nearest pixels, larger by whole numbers, to reshapes and `concat` of a value with itself.

    Columns go first: then fewer rows are copied twice. At the edges of the device's work the host does both.
    """

    name = "copy-pixels"
    summary = "rewrites a resize by whole numbers as copies of pixels"
    level = 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return Rewriter(graph, self.name).rewrite(_copy)


def _copy(rewriter: Rewriter, node: Node) -> bool:
    """Puts the node as copies, if it is a resize that needs nothing else."""
    if not isinstance(node.attributes, ResizeAttributes) or node.attributes.mode != "nearest" or is_pinned(node):
        return False
    (x,) = rewriter.operands(node)
    images, rows, columns, _ = x.type.shape
    height, width = node.type.shape[1:3]
    if height % rows or width % columns:
        return False
    wide = _repeated(rewriter, node, x, (images, rows, columns), width // columns)
    tall = _repeated(rewriter, node, wide, (images, rows), height // rows)
    rewriter.put(as_reshape(node, tall.name))
    return True


def _repeated(rewriter: Rewriter, node: Node, x: Node, leading: Shape, times: int) -> Node:
    """The value with each part at the leading indices repeated so many times."""
    if times == 1:
        return x
    channels = node.type.columns
    pixels = x.type.rows // prod(leading)
    apart = rewriter.reshape(x, (*leading, 1, pixels, channels))
    type_ = replace(apart.type, shape=(*leading, times, pixels, channels))
    attributes = ConcatAttributes(len(leading))
    return rewriter.make(Node(node.name, "concat", (apart.name,) * times, attributes, type_, node.origin))
