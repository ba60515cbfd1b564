"""The host prepares the images of the first convolutions, where that makes the whole faster.

A pixel of few channels fills few lanes of a row, and so few rows of the matrix unit: 3 of 256 for an RGB image. The host can put the
pixels that a kernel meets side by side into one row (a part of what is known as im2col). Then the convolution has fewer positions and each
uses more of the unit. But the host writes every pixel once for each window that it is in, and makes integers of all of them, and the rows
cross the link.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tpucc.ir import Graph, Node, Quantisation, TensorType, f32
from tpucc.ops import dequantizes, quantizes
from tpucc.ops.axis import Axis, sides
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes
from tpucc.ops.names import constant, conv2d, patches
from tpucc.ops.patches import PatchesAttributes
from tpucc.ops.rules import require_pair
from tpucc.ops.windows import MAX_STEP, Pair
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.explicit_quantisation import holding
from tpucc.passes.layering.products import layer_name
from tpucc.passes.place import require_placed
from tpucc.passes.rewriter import Rewriter, as_constant, is_pinned
from tpucc.passes.rules import Match, Rules, rule, variable
from tpucc.target import Target


@graph_pass("pack-patches", "packs the pixels of each window into a row on the host, for convolutions of few channels", level=1)
def pack_patches(graph: Graph, context: Context) -> Graph:
    """Rewrites conv2d of a value of the host as one of its `patches`: whole windows, lines of windows, or just padded pixels.

    The cheapest by an estimate wins, and the image as it is among them: the time of the host, of its link and of the matrix unit. In a
    batch alone they work one after the other, in a stream side by side. Where the context is sparing, the one of fewest rows wins.
    """
    if not any(conv2d.made(node) for node in graph):
        return graph
    require_placed(graph, "patches are packed")
    image, kernel = variable("read", lambda node: not patches.made(node)), variable("kernel", constant.made)
    first = rule("a convolution of the host's image", conv2d(image, kernel), _packed, when=lambda m: m.root.on_device)
    return Rules("pack-patches", first).run(graph, context)


@dataclass(frozen=True, slots=True)
class _Packing:
    """A way to prepare the image: the patches' attributes and shape, and the kernel positions `taps` that are left, with their stride and
    dilation."""

    attributes: PatchesAttributes
    image: tuple[int, ...]
    taps: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)

    @property
    def rows(self) -> int:
        """Rows of a column block of the image."""
        return prod(self.image[:3])

    def cycles(self, image: TensorType, outputs: TensorType, border: int, context: Context) -> int:
        """Estimated cycles.

        The host writes patches, unless this is the image itself, and makes integers of them. Their rows cross the link. The matrix unit
        takes a row, at a cycle a byte of a value, for each position, column block of x and column block of y. The image itself gets its
        border on the device, which copies it: `border` rows. In a batch alone the shorter of link and matrix unit is hidden by half: that
        lies between all and nothing, as bands and parts of a batch overlap them. Several cores choose as one does: they give its bits.
        """
        target, size = context.target, context.format.bytes_per_value
        written = 0 if self.image == image.shape else max(prod(self.image), image.size)
        host = target.host_step_cycles(written + prod(self.image))
        widths = target.link_widths(self.image[3])
        link = target.link_cycles(self.rows * sum(widths) * size)
        tiles = prod(self.taps) * len(widths) * -(-outputs.columns // target.mxu)
        matrix = tiles * max(outputs.rows * size, target.tile_shift_cycles) + (border * len(widths) * size if not written else 0)
        return max(host, link, matrix) if context.goal == "stream" else host + max(link, matrix) + min(link, matrix) // 2


def _packed(m: Match) -> Node | None:
    """A convolution of patches in the place of one of a value of the host, if that is better; a note says what it gains."""
    node, kernel, context = m.root, m.kernel, m.context
    image, held = _of_host(m.rewriter, m.read)
    if image is None:
        return None
    attributes = conv2d.attributes_of(node)
    height, width = conv_axes(attributes, image.type.shape, kernel.type.shape)
    as_it_is = _Packing(PatchesAttributes(), image.type.shape, (height.window, width.window), (height.stride, width.stride))

    border = image.type.shape[0] * (height.size + height.before + height.after) * (width.size + width.before + width.after)
    border = border if any(sides(height, width)) else 0

    def cost(packing: _Packing) -> int:
        if context.sparing:
            return packing.rows + (border if packing is as_it_is else 0)
        return packing.cycles(image.type, node.type, border, context)

    best = min((as_it_is, *_packings(image.type.shape, height, width, attributes.groups)), key=cost)
    if best is as_it_is:
        return None
    prepared = f32(*best.image)
    if held is not None:
        prepared = holding(prepared, held, context.format)
    elif image.type.range is not None:
        prepared = prepared.with_range(image.type.range)
    packed = m.rewriter.make(patches.node(f"{image.name}.patches", (image.name,), best.attributes, prepared, node.origin, "host"))
    shape = (*best.taps, best.image[3] // attributes.groups, node.type.columns)
    if shape != kernel.type.shape:
        weights = constant.attributes_of(kernel).value.data.reshape(shape)
        kernel = m.rewriter.make(as_constant(replace(kernel, type=replace(kernel.type, shape=shape), place=None), weights))
    if best.attributes.size != 1:
        m.rewriter.notes.append(_gain(node.origin.after(layer_name(node)), best, image.type.columns, context.target))
    return replace(
        node,
        operands=(packed.name, kernel.name),
        attributes=Conv2dAttributes(best.stride, dilation=_apart(best.dilation), groups=attributes.groups),
    )


def _of_host(rewriter: Rewriter, image: Node) -> tuple[Node | None, Quantisation | None]:
    """The value of the host that a convolution reads, and how the source says that it is held: the host quantises the patches so. None for
    values of the device."""
    if not image.on_device:
        return (None, None) if is_pinned(image) else (image, None)
    quantised = rewriter.operands(image)[0] if dequantizes(image.op) else image
    if not quantizes(quantised.op):
        return None, None
    (read,) = rewriter.operands(quantised)
    return (None, None) if read.on_device or is_pinned(read) else (read, quantised.type.quantisation)


def _gain(layer: str, packing: _Packing, channels: int, target: Target) -> str:
    """The lanes of the matrix unit that packing gains."""
    rows, columns = require_pair(packing.attributes.size, "size", MAX_STEP)
    lanes = packing.image[3]
    room = -(-lanes // target.mxu) * target.mxu
    return f"{layer}: the host packs {rows}×{columns} pixels into a row, so that {lanes} of {room} lanes are in use instead of {channels}"


def _apart(dilation: tuple[int, int]) -> Pair:
    """A dilation as attributes have it: the default where there is none."""
    return 1 if dilation == (1, 1) else dilation


def _packings(x: tuple[int, ...], height: Axis, width: Axis, groups: int) -> Iterator[_Packing]:
    """Padded pixels, lines of windows, whole windows. Windows in a row have no groups of channels: these keep their pixels."""
    images, _, _, channels = x
    around = sides(height, width)
    lines = height.size + height.before + height.after
    pixels = width.size + width.before + width.after
    windows, strides, apart = (height.window, width.window), (height.stride, width.stride), (height.dilation, width.dilation)
    yield _Packing(PatchesAttributes(1, 1, around), (images, lines, pixels, channels), windows, strides, apart)
    if groups > 1:
        return
    line = PatchesAttributes((1, width.window), (1, width.stride), around, _apart((1, width.dilation)))
    shape = (images, lines, width.outputs, width.window * channels)
    yield _Packing(line, shape, (height.window, 1), (height.stride, 1), (height.dilation, 1))
    whole = PatchesAttributes(windows, strides, around, _apart(apart))
    yield _Packing(whole, (images, height.outputs, width.outputs, prod(windows) * channels), (1, 1), (1, 1))
