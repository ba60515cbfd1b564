"""resize: images in another height and width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import Constant, TensorType, f32
from tpucc.numerics import AnyArray, Float64
from tpucc.ops.batch import images
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import MAX_SIZE, require_f32, require_pair, require_rank, shown

MODES = ("nearest", "bilinear")


@dataclass(frozen=True, slots=True)
class ResizeAttributes:
    """`size` is the result's (height, width), or one integer for both; `mode` is "nearest" or "bilinear"."""

    size: int | tuple[int, int]
    mode: str = "nearest"


def infer(attributes: ResizeAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` becomes `[N, H', W', C]`."""
    require_f32(types)
    require_rank(types[0], 4, 0, "[batch, height, width, channels]")
    height, width = require_pair(attributes.size, "size", MAX_SIZE)
    if attributes.mode not in MODES:
        raise RuleError("E0307", f'mode must be "nearest" or "bilinear"{shown(attributes.mode)}', about=("mode",))
    return f32(types[0].shape[0], height, width, types[0].shape[3])


def nearest(size: int, outputs: int) -> AnyArray:
    """The pixel that each output takes: int64 [outputs], `floor(i * size / outputs)`."""
    return np.arange(outputs) * size // outputs


def between(size: int, outputs: int) -> tuple[AnyArray, AnyArray, Float64]:
    """The two pixels that each output lies between, and the share of the second.

    Pixel i has its centre at i + 1/2, and so has the output: at (i + 1/2) * size / outputs - 1/2 of the pixels. Outside of the centres of
    the first and the last pixel, these are taken.
    """
    centre = np.clip((np.arange(outputs) + 0.5) * (size / outputs) - 0.5, 0, size - 1)
    first = np.floor(centre).astype(np.int64)
    return first, np.minimum(first + 1, size - 1), centre - first


def reference(attributes: ResizeAttributes, operands: Arrays) -> Array:
    """Rows of pixels first, then columns: `a * (1 - share) + b * share`, with shares rounded once to the type of the operand."""
    (x,) = operands
    height, width = require_pair(attributes.size, "size", MAX_SIZE)
    if attributes.mode == "nearest":
        return np.asarray(x[:, nearest(x.shape[1], height)][:, :, nearest(x.shape[2], width)])
    above, below, lower = between(x.shape[1], height)
    share = lower.astype(x.dtype)[:, np.newaxis, np.newaxis]
    lines = x[:, above] * (1 - share) + x[:, below] * share
    left, right, farther = between(x.shape[2], width)
    share = farther.astype(x.dtype)[:, np.newaxis]
    return np.asarray(lines[:, :, left] * (1 - share) + lines[:, :, right] * share)


def _matrix(mode: str, size: int, outputs: int) -> Constant:
    """The share of each pixel in each output: float32 [outputs, size]."""
    shares, each = np.zeros((outputs, size)), np.arange(outputs)
    if mode == "nearest":
        shares[each, nearest(size, outputs)] = 1
    else:
        first, second, share = between(size, outputs)
        shares[each, first] = 1 - share
        shares[each, second] += share
    return Constant(shares.astype(np.float32))


def gradient(g: Backward) -> Gradients:
    """dx = the transposed product: each pixel gets of every output its share, along the width and then along the height."""
    _, height, width, _ = g.operands[0].shape
    across = g.dy.builder.constant(_matrix(g.attributes.mode, width, g.dy.shape[2]))
    down = g.dy.builder.constant(_matrix(g.attributes.mode, height, g.dy.shape[1]))
    columns = g.dy.transposed(0, 1, 3, 2) @ across
    return ((columns.transposed(0, 3, 2, 1) @ down).transposed(0, 3, 1, 2),)


def onnx(g: Call) -> str:
    """Nearest pixels are Resize where the image grows by whole numbers: for other sizes its float32 coordinates may round down too far."""
    _, *sizes, _ = g.types[0].shape
    _, *outputs, _ = g.result.shape
    if g.attributes.mode == "nearest" and any(output % size for size, output in zip(sizes, outputs, strict=True)):
        made = g.operands[0]
        for axis, (size, output) in enumerate(zip(sizes, outputs, strict=True), 1):
            made = g.node("Gather", made, g.integers(nearest(size, output).tolist(), "pixels"), axis=g.axis(axis))
        return made
    to = g.integers(g.by_axis(g.result.shape), "sizes")
    if g.attributes.mode == "nearest":
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        how = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    return g.node("Resize", *g.operands, "", "", to, **how)


OP = OpDef(
    name="resize",
    summary="images in another height and width",
    documentation=(
        '`resize(x, (height, width))`. "nearest" takes pixel floor(i * size / new size), as UpSampling2D of Keras and interpolate of '
        'PyTorch do. "bilinear" weighs the four nearest pixels, whose centres are at half numbers, and takes those at the edge beyond it; '
        "nothing is smoothed when an image shrinks. On the device, an image that grows by whole numbers is copies of the nearest pixels; "
        "all else is a step of the host. "
        "ONNX: Resize, nearest with asymmetric and floor, or linear with half_pixel. TensorFlow: image.resize (bilinear)."
    ),
    operands=(Operand("x"),),
    attributes=ResizeAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device copies pixels a whole number of times, and mixes none"),
    facts=whole(batch=images),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example("one whole tile", ResizeAttributes((16, 8)), (f32(1, 8, 4, 256),)),
        Example("ragged", ResizeAttributes((7, 5)), (f32(2, 3, 9, 5),)),
        Example("bilinear, larger", ResizeAttributes((7, 10), "bilinear"), (f32(2, 3, 5, 3),)),
        Example("bilinear, smaller", ResizeAttributes(2, "bilinear"), (f32(1, 5, 3, 2),)),
    ),
)
