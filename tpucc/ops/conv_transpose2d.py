"""conv_transpose2d: a convolution the other way, which spreads each pixel over a window of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product as pairs
from math import prod
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Axis
from tpucc.ops.batch import images
from tpucc.ops.conv2d import layout_help, patch_rows, sizes_help
from tpucc.ops.facts import Product, product
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Defined, Example, Matrix, OpDef, Operand, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes, all_of
from tpucc.ops.rules import require_f32, require_pair, require_rank
from tpucc.ops.windows import Padding, Pair, axes, of_groups, onnx_windows, patches_of, sides_of


@dataclass(frozen=True, slots=True)
class ConvTranspose2dAttributes:
    """`stride` is (height, width) or one integer for both; `padding` is "valid", "same", an integer, or (top, bottom, left, right)."""

    stride: Pair = 1
    padding: Padding = "valid"


MAX_STRIDE = 64
"""On the device each phase of the stride is a layer."""
SWAPPED = (0, 1, 3, 2)
"""A kernel with its channels exchanged: that of the convolution which goes from the result back to the image."""


def infer(attributes: ConvTranspose2dAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` with a kernel `[R, S, C, F]` becomes `[N, H', W', F]`."""
    x, w = types
    require_f32(types)
    require_rank(x, 4, 0, "[batch, height, width, channels]")
    require_rank(w, 4, 1, "[height, width, channels in, channels out]")
    if x.shape[3] != w.shape[2]:
        keras = "; Keras's kernels have the filters first: transpose({1}, (0, 1, 3, 2)) makes one of them"
        text = sizes_help(x.shape, w.shape)
        mend = text + keras if x.shape[3] == w.shape[3] else layout_help(text, x.shape, w.shape, 0)
        raise RuleError("E0311", "channels differ", about=(0, 1), help=mend)
    height, width = transposed_axes(attributes, x.shape, w.shape)
    return f32(x.shape[0], height.size, width.size, w.shape[3])


def transposed_axes(attributes: Any, x: Shape, w: Shape) -> tuple[Axis, Axis]:
    """The axes of the result under the windows that the pixels of `x` spread over: they have the sizes of the result.

    `attributes` may be those of the fused operator. Raises `RuleError` when the padding leaves nothing of the result.
    """
    stride = require_pair(attributes.stride, "stride", MAX_STRIDE)
    whole = [(size - 1) * step + max(window, step) for size, window, step in zip(x[1:3], w[:2], stride, strict=True)]
    if attributes.padding == "same":
        height, width = (size * step for size, step in zip(x[1:3], stride, strict=True))
    else:
        top, bottom, left, right = sides_of(attributes.padding, whole, w[:2], stride)
        height, width = whole[0] - top - bottom, whole[1] - left - right
    if min(height, width) < 1:
        raise RuleError("E0312", f"the padding leaves nothing of the result's {whole[0]}×{whole[1]} pixels", about=("padding",))
    return axes((x[0], height, width, w[3]), (w[0], w[1]), stride, attributes.padding)


def spread(x: Array, w: Array, axes: tuple[Axis, Axis], groups: int, product: Callable[[Array, Array], Array]) -> Array:
    """The pixels of `x` [N, H, W, C] over the windows of the result's axes, by a kernel [R, S, C, F/groups]: `[N, H', W', F]`.

    It is the product of patches of the image with the kernel flipped. With a stride it is one such product for each phase: pixels of the
    result at multiples of the stride from one another, which the same few kernel positions meet. The depth of each product is in the order
    kernel row, kernel column (both descending, so that the pixels of the image ascend), channel. The zeros of padding have their places in
    that order; those that a dilated image would have between its pixels have none. Each group of channels is a product of its own.
    """
    height, width = axes
    result = np.zeros_like(x, order="C", shape=(len(x), height.size, width.size, w.shape[3] * groups))
    for (rows, r, lines), (columns, s, beside) in pairs(height.phases(), width.phases()):
        kernel = w[r, s].reshape(-1, w.shape[3])
        patches = patches_of(x, lines, beside)
        positions = lines.window * beside.window
        rows_of, kernels = of_groups(patches.reshape(-1, len(kernel)), positions, groups), of_groups(kernel.T, positions, groups)
        pixels = [product(group, turned.T) for group, turned in zip(rows_of, kernels, strict=True)]
        result[:, rows, columns] = np.concatenate(pixels, axis=1).reshape(*patches.shape[:3], result.shape[3])
    return result


def spread_products(x: Shape, w: Shape, axes: tuple[Axis, Axis], groups: int) -> Sequence[Product]:
    """The products of `spread`, of the shapes of its operands."""
    height, width = axes
    found = []
    for (_, _, lines), (_, _, beside) in pairs(height.phases(), width.phases()):
        rows, window, channels = x[0] * lines.outputs * beside.outputs, (lines.window, beside.window), w[2] // groups
        found.append(Product(rows, prod(window) * channels, w[3], groups, patch_rows(rows, window, channels, beside.dilation)))
    return found


def defined(attributes: ConvTranspose2dAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    x, w = operands
    return spread(x, w, transposed_axes(attributes, x.shape, w.shape), 1, arithmetic.product)


def gradient(g: Backward) -> Gradients:
    """dx = conv2d(dy, w'), dw' = conv2d_weight_gradient(dy, x), where w' is w with its channels exchanged."""
    x, w = g.operands
    steps = {"stride": g.attributes.stride, "padding": g.attributes.padding}
    turned = tuple(w.shape[axis] for axis in SWAPPED)
    return (
        g.dy.call("conv2d", w.transposed(*SWAPPED), **steps) if g.wanted[0] else None,
        g.dy.call("conv2d_weight_gradient", x, shape=turned, **steps).transposed(*SWAPPED) if g.wanted[1] else None,
    )


def _part(attributes: Any, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """Filters of some images; a part of the pixels is not computed alone."""
    if bounds[1:3] != all_of(result)[1:3]:
        return None
    x, *weights = shapes
    return Part(((bounds[0], *all_of(x)[1:]), *((*all_of(shape)[:-1], bounds[3]) for shape in weights)), attributes)


def _products(attributes: Any, shapes: Shapes) -> Sequence[Product]:
    return spread_products(shapes[0], shapes[1], transposed_axes(attributes, *shapes[:2]), 1)


FACTS = replace(
    product(fuses_into="transposed_convolution"), part=_part, batch=images, terms=lambda shapes: prod(shapes[1][:3]), products=_products
)


def onnx(g: Call) -> str:
    """With the bias, too, of an operator that has one. Pixels that no window meets are ONNX's output padding."""
    x, _, *bias = g.operands
    axes = transposed_axes(g.attributes, *(type_.shape for type_ in g.types[:2]))
    inputs = g.types[0].shape[1:3]
    met = ((count - 1) * axis.stride + axis.window - axis.before - axis.after for count, axis in zip(inputs, axes, strict=True))
    rest = [axis.size - size for axis, size in zip(axes, met, strict=True)]
    return g.node("ConvTranspose", x, g.nodes.permuted(1, (2, 3, 0, 1)), *bias, output_padding=rest, **onnx_windows(*axes))


OP = OpDef(
    name="conv_transpose2d",
    summary="a transposed convolution: each pixel spreads over a window of the result",
    documentation=(
        "Pixel (i, j) of the image adds x[i, j] @ w[r, s] to pixel (i * stride + r, j * stride + s) of the result, less the padding at the "
        "top and the left. Kernels are HWIO as those of conv2d, [height, width, channels in, filters]: those of Keras have the last two "
        'exchanged. The sizes are Keras\'s: with "same" size * stride, with "valid" (size - 1) * stride + max(window, stride); padding in '
        "numbers is cut off that. The device computes it as stride * stride convolutions of the image, one for each of so many "
        "neighbouring pixels of the result, and puts their pixels between one another. TensorFlow: nn.conv2d_transpose. Keras: "
        "Conv2DTranspose. ONNX: ConvTranspose (NCHW there)."
    ),
    operands=(Operand("x"), Operand("w")),
    attributes=ConvTranspose2dAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=Matrix(),
    facts=FACTS,
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example("one whole tile", ConvTranspose2dAttributes(2), (f32(1, 8, 8, 256), f32(2, 2, 256, 256))),
        Example("ragged", ConvTranspose2dAttributes(2, "same"), (f32(2, 4, 5, 3), f32(3, 2, 3, 5))),
        Example("padding by hand", ConvTranspose2dAttributes((1, 3), (2, 0, 1, 3)), (f32(1, 5, 3, 2), f32(3, 4, 2, 4))),
        Example("pixels that no window meets", ConvTranspose2dAttributes((3, 2)), (f32(1, 2, 3, 3), f32(2, 1, 3, 2))),
    ),
)
