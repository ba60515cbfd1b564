"""patches: the pixels of each window of an image side by side, in one row. Internal: no source calls it; the pass `pack-patches` makes it,
so that the host packs what a convolution reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Axis
from tpucc.ops.batch import images
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, Types
from tpucc.ops.rules import require_f32, require_pair, require_rank
from tpucc.ops.windows import MAX_STEP, Padding, Pair, axes, patches_of


@dataclass(frozen=True, slots=True)
class PatchesAttributes:
    """`size`, `stride` and `dilation` of the windows, in pixels, are (height, width) or one integer for both. `padding` is as in conv2d
    ("valid" is none), and its pixels are zeros."""

    size: Pair = 1
    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1


def infer(attributes: PatchesAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` becomes `[N, H', W', R·S·C]` for windows of R×S pixels. The last axis has the window's pixels row by row, the channels
    of a pixel together: the order of a kernel `[R, S, C, F]`."""
    require_f32(types)
    require_rank(types[0], 4, 0, "[batch, height, width, channels]")
    height, width = window_axes(attributes, types[0].shape)
    return f32(types[0].shape[0], height.outputs, width.outputs, height.window * width.window * types[0].shape[3])


def window_axes(attributes: PatchesAttributes, x: tuple[int, ...]) -> tuple[Axis, Axis]:
    """Height and width of an image of the shape `x` under the windows. Raises `RuleError` where no window fits."""
    size, stride = require_pair(attributes.size, "size", MAX_STEP), require_pair(attributes.stride, "stride", MAX_STEP)
    return axes(x, size, stride, attributes.padding, require_pair(attributes.dilation, "dilation", MAX_STEP))


def reference(attributes: PatchesAttributes, operands: Arrays) -> Array:
    return patches_of(operands[0], *window_axes(attributes, operands[0].shape))


def onnx(g: Call) -> str:
    """The pixel at one place of each window, over all windows, is a slice of the image in steps of the stride. One such slice for each
    place, joined along the channels, are the patches."""
    (x,), axes = g.operands, window_axes(g.attributes, g.types[0].shape)
    if any(axis.before or axis.after for axis in axes):
        pads = [side for end in ("before", "after") for side in (0, *(getattr(axis, end) for axis in axes), 0)]
        x = g.node("Pad", x, g.integers(pads, "pads"))
    where, steps = g.integers((1, 2), "axes"), g.integers([axis.stride for axis in axes], "steps")
    spans = [(axis.outputs - 1) * axis.stride + 1 for axis in axes]
    places = ([taps * axis.dilation for taps, axis in zip(at, axes, strict=True)] for at in np.ndindex(*(axis.window for axis in axes)))
    parts = [
        g.node("Slice", x, g.integers(first, "starts"), g.integers(np.add(first, spans).tolist(), "ends"), where, steps) for first in places
    ]
    return g.node("Concat", *parts, axis=3)


OP = OpDef(
    name="patches",
    summary="the pixels of each window of an image, in one row",
    documentation=(
        "The host packs the input of a convolution so. This is known as im2col. With windows of one pixel and a stride of 1 it only pads. "
        "TensorFlow: image.extract_patches."
    ),
    operands=(Operand("x"),),
    attributes=PatchesAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("only the host can put the pixels of a window into one row"),
    facts=whole(batch=images),
    gradient=Missing("made by packing, after differentiation"),
    floats=Ieee(),
    onnx=Form(onnx),
    examples=(
        Example("one whole tile", PatchesAttributes((1, 8), 8), (f32(1, 16, 16, 32),)),
        Example("ragged", PatchesAttributes(3, 2, "same"), (f32(2, 7, 9, 3),)),
        Example("dilated", PatchesAttributes((2, 3), 1, 1, (3, 2)), (f32(1, 7, 6, 3),)),
        Example("nothing but padding", PatchesAttributes(1, 1, (2, 0, 1, 3)), (f32(1, 5, 6, 2),)),
    ),
)
