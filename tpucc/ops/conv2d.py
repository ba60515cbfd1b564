"""conv2d: the convolution of an image with a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import PLAIN, PORTABLE, Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Axis
from tpucc.ops.facts import Patches, Product, windowed
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Defined, Example, Matrix, OpDef, Operand, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes
from tpucc.ops.rules import MAX_SIZE, require_f32, require_integer, require_pair, require_rank
from tpucc.ops.windows import MAX_STEP, Padding, Pair, axes, of_groups, onnx_windows, patches_of, window_part

AT_ONCE = 2**24
"""Values of the patches of several images that are convolved at once, as they would be with a stride of 1."""

EACH_GROUP = "each group has as many channels, and as many filters"


@dataclass(frozen=True, slots=True)
class Conv2dAttributes:
    """`stride` is (height, width) or one integer for both; `padding` is "valid", "same", an integer, or (top, bottom, left, right).

    The kernel's positions are `dilation` pixels apart, (height, width) or one integer. Channels and filters are divided into `groups`.
    """

    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1
    groups: int = 1


def infer(attributes: Conv2dAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` with a kernel `[R, S, C/groups, F]` becomes `[N, H', W', F]`."""
    x, w = types
    require_f32(types)
    require_rank(x, 4, 0, "[batch, height, width, channels]")
    require_rank(w, 4, 1, "[height, width, channels in, channels out]")
    groups = require_integer(attributes.groups, "groups", 1, MAX_SIZE)
    require_groups(groups, x.shape, w.shape, (0, 1), layout_help(EACH_GROUP, x.shape, w.shape, 1, groups))
    if x.shape[3] != w.shape[2] * groups:
        raise RuleError("E0311", "channels differ", about=(0, 1), help=_channels_help(x.shape, w.shape, groups))
    return f32(*conv_shape(attributes, x.shape, w.shape))


def require_groups(groups: object, x: Shape, w: Shape, about: tuple[int | str, int | str], mend: str = EACH_GROUP) -> None:
    """Raises `RuleError` unless `groups` divides the channels of the image and of the kernel, whose numbers or names are in `about`."""
    count = require_integer(groups, "groups", 1, MAX_SIZE)
    for index, size, what in zip(about, (x[3], w[3]), ("channels of {0}", "filters of {1}"), strict=True):
        if size % count:
            raise RuleError("E0311", f"{count:,} groups don't divide the {size:,} {what}", about=("groups", index), help=mend)


def _channels_help(x: Shape, w: Shape, groups: int) -> str:
    if groups == 1 and w[2] == 1 != x[1] and w[3] % x[3] == 0:
        return "the third size of {1} is 1: with groups={0}.shape[3] it has a kernel for each channel of {0}, which is known as depthwise"
    each = x[3] // groups
    text = f"{groups:,} groups of the {x[3]:,} channels of {{0}} have {each:,} each: the third size of {{1}} must be {each:,}"
    return layout_help(text if groups > 1 else sizes_help(x, w), x, w, 1, groups)


def sizes_help(x: Shape, w: Shape) -> str:
    """Which sizes of an image and a kernel must be equal."""
    return f"the last size of {{0}} must be the third of {{1}}, and {x[3]} is not {w[2]}"


def layout_help(text: str, x: Shape, w: Shape, channels: int, groups: int = 1) -> str:
    """`text`, and how to make NHWC and HWIO of PyTorch's axes where the channels agree then: those of the image, of the kernel, or of both,
    which is all that is to be said.

    `channels` is the axis of a kernel's channels in PyTorch: 1 (OIHW), 0 of a transposed convolution (IOHW).
    """
    order, turned = (("IOHW", (2, 3, 0, 1)), ("OIHW", (2, 3, 1, 0)))[channels]
    ours, theirs = w[2] * groups, w[channels] * groups
    if x[3] == ours:
        return text
    if x[1] == ours:
        return f"{text}; images are NHWC: transpose({{0}}, (0, 2, 3, 1)) turns NCHW into it"
    if x[3] == theirs:
        return f"{text}; kernels are HWIO: transpose({{1}}, {turned}) turns {order} into it"
    if x[1] == theirs:
        both = f"transpose({{0}}, (0, 2, 3, 1)) turns NCHW, and transpose({{1}}, {turned}) {order}, into them"
        return f"images are NHWC and kernels HWIO: {both}"
    return text


def conv_axes(attributes: Conv2dAttributes, x: tuple[int, ...], w: tuple[int, ...]) -> tuple[Axis, Axis]:
    """The spatial axes of a convolution of an image of the shape `x`, [N, H, W, C], with a kernel of the shape `w`, [R, S, …]."""
    stride, dilation = require_pair(attributes.stride, "stride", MAX_STEP), require_pair(attributes.dilation, "dilation", MAX_STEP)
    return axes(x, (w[0], w[1]), stride, attributes.padding, dilation)


def conv_shape(attributes: Conv2dAttributes, x: Shape, w: Shape) -> Shape:
    """The shape of the convolution of images of the shape `x` with a kernel of the shape `w`."""
    height, width = conv_axes(attributes, x, w)
    return x[0], height.outputs, width.outputs, w[3]


def _by_position(attributes: Conv2dAttributes, x: Array, w: Array) -> Array:
    """One product a kernel position and group: all pixels that it meets, times its matrix [C/groups, F/groups]."""
    height, width = conv_axes(attributes, x.shape, w.shape)
    result = np.zeros(conv_shape(attributes, x.shape, w.shape), x.dtype)
    for r in height.positions:
        rows_out, rows = height.tap(r)
        for s in width.positions:
            columns_out, columns = width.tap(s)
            result[:, rows_out, columns_out] += _product(x[:, rows, columns], w[r, s], attributes.groups)
    return result


def _product(pixels: Array, matrix: Array, groups: int) -> Array:
    """Pixels [N, h, w, C] times a matrix [C/groups, F], group by group: [N, h, w, F]."""
    flat = pixels.reshape(pixels.shape[0] * pixels.shape[1] * pixels.shape[2], pixels.shape[3])
    if groups == 1:
        products = flat @ matrix
    elif len(matrix) == 1:
        products = flat[:, :, np.newaxis] * matrix.reshape(groups, -1)
    else:
        by_group = flat.reshape(len(flat), groups, len(matrix)).swapaxes(0, 1)
        products = (by_group @ matrix.reshape(len(matrix), groups, -1).swapaxes(0, 1)).swapaxes(0, 1)
    return products.reshape(*pixels.shape[:3], matrix.shape[1])


def conv_windows(attributes: Any, shapes: Shapes) -> tuple[Axis, Axis]:
    """The axes of a convolution, whatever is fused into it."""
    return conv_axes(Conv2dAttributes(attributes.stride, attributes.padding, attributes.dilation), shapes[0], shapes[1])


_lines_part = window_part(conv_windows)


def conv_part(attributes: Any, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """As that of all windows. Filters of whole groups, or some of one group, read these groups' channels. For other filters there is no
    part: the operands are taken whole."""
    part = _lines_part(attributes, shapes, result, bounds)
    filters, depth = result[3] // attributes.groups, shapes[1][2]
    start, stop = bounds[3]
    first, last = start // filters, -(-stop // filters)
    if last - first == attributes.groups:
        return part if (start, stop) == (0, result[3]) or attributes.groups == 1 else None
    if last - first > 1 and (start % filters or stop % filters):
        return None
    image, *kernel = part.operands
    return Part(((*image[:3], (first * depth, last * depth)), *kernel), replace(part.attributes, groups=last - first))


def patch_rows(rows: int, window: tuple[int, int], channels: int, dilation: int) -> Patches:
    """Patches of so many rows. The pixels of a dilated window aren't neighbours: each is a line."""
    lines, pixels = window
    return Patches(rows, lines, pixels, channels) if dilation == 1 else Patches(rows, lines * pixels, 1, channels)


def conv_products(attributes: Any, shapes: Shapes) -> Sequence[Product]:
    """The patches times the kernel, for each group of channels."""
    height, width = conv_windows(attributes, shapes)
    r, s, channels, filters = shapes[1]
    rows, groups = shapes[0][0] * height.outputs * width.outputs, attributes.groups
    return (Product(rows, r * s * channels, filters // groups, groups, patch_rows(rows, (r, s), channels, width.dilation)),)


def defined(attributes: Conv2dAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The product of the patches [N·H'·W', R·S·C] with the kernel [R·S·C, F]: depth in the order kernel row, kernel column, channel.

    The zeros of padding have their places in that order. Each group of channels is a product of its own. Many images are convolved one by
    one, so that their patches fit a memory.
    """
    x, w = operands
    if arithmetic is PLAIN or (w.shape[2] == 1 and arithmetic is PORTABLE):
        return _by_position(attributes, x, w)  # faster; of one channel it is products alone, added in one order: that of the positions
    if len(x) > 1 and x.size * w.shape[0] * w.shape[1] > AT_ONCE:
        return np.concatenate([defined(attributes, (x[image : image + 1], w), arithmetic) for image in range(len(x))])
    patches = patches_of(x, *conv_axes(attributes, x.shape, w.shape))
    rows, kernel = patches.reshape(-1, patches.shape[3]), w.reshape(-1, w.shape[3])
    if attributes.groups == 1:
        pixels = arithmetic.product(rows, kernel)
    else:
        groups = [*of_groups(rows, w.shape[0] * w.shape[1], attributes.groups)], [*of_groups(kernel, 1, attributes.groups)]
        pixels = np.concatenate(arithmetic.products(*map(np.stack, groups)), axis=1)
    return pixels.reshape(*patches.shape[:3], w.shape[3])


def gradient(g: Backward) -> Gradients:
    """dx = conv2d_input_gradient(dy, w); dw = conv2d_weight_gradient(x, dy)."""
    x, w = g.operands
    steps = {name: getattr(g.attributes, name) for name in Conv2dAttributes.__dataclass_fields__}
    return (
        g.dy.call("conv2d_input_gradient", w, shape=x.shape, **steps) if g.wanted[0] else None,
        x.call("conv2d_weight_gradient", g.dy, shape=w.shape, **steps) if g.wanted[1] else None,
    )


def onnx(g: Call) -> str:
    """With the bias, too, of an operator that has one."""
    windows = onnx_windows(*conv_windows(g.attributes, [type_.shape for type_ in g.types]))
    x, _, *bias = g.operands
    return g.node("Conv", x, g.nodes.permuted(1, (3, 2, 0, 1)), *bias, group=g.attributes.groups, **windows)


OP = OpDef(
    name="conv2d",
    summary="the convolution of an image with a kernel",
    documentation=(
        'Images are NHWC and kernels HWIO, as in Keras, and the kernel isn\'t flipped. `padding` is "valid" for none, "same", one '
        'number for all sides, or (top, bottom, left, right). "same" is TensorFlow\'s rule: ceil(size / stride) outputs, an odd pixel '
        "of padding at the bottom and the right. The padding is zeros. With `dilation` the kernel's positions lie so many pixels "
        "apart. With `groups` channels and filters are divided into so many parts, and the kernel is "
        "[height, width, channels / groups, filters]; `groups=x.shape[3]` with a kernel [height, width, 1, filters] is depthwise. "
        "A computed kernel makes it a product of two computed values. TensorFlow: nn.conv2d, nn.depthwise_conv2d. ONNX: Conv (NCHW there)."
    ),
    operands=(Operand("x"), Operand("w")),
    attributes=Conv2dAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=Matrix(),
    facts=windowed(
        conv_windows,
        part=conv_part,
        keeps_parameters=False,
        terms=lambda shapes: prod(shapes[1][:3]),
        fuses_into="convolution",
        products=conv_products,
    ),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example("one whole tile", Conv2dAttributes(), (f32(1, 16, 16, 256), f32(1, 1, 256, 256))),
        Example("ragged", Conv2dAttributes(2, "same"), (f32(2, 7, 9, 3), f32(3, 2, 3, 5))),
        Example("padding by hand", Conv2dAttributes((1, 3), (2, 0, 1, 3)), (f32(1, 5, 6, 2), f32(3, 3, 2, 4))),
        Example("a border around single pixels", Conv2dAttributes(1, 1), (f32(1, 2, 2, 3), f32(1, 1, 3, 2))),
        Example("dilated", Conv2dAttributes((2, 1), "same", (2, 3)), (f32(2, 7, 9, 3), f32(3, 2, 3, 5))),
        Example("in groups", Conv2dAttributes(2, 1, groups=3), (f32(1, 5, 6, 6), f32(3, 2, 2, 9))),
        Example("depthwise", Conv2dAttributes(1, "same", groups=5), (f32(1, 5, 6, 5), f32(3, 3, 1, 10))),
    ),
)
