"""avg_pool: the average of each window."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Axis
from tpucc.ops.facts import one_term, windowed
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Pooling, Types
from tpucc.ops.parts import Shape, Shapes
from tpucc.ops.rules import require_flag
from tpucc.ops.windows import POOLS, PoolAttributes, infer_pool, onnx_windows, pixels_seen, pool_axes, pool_part, reduce_axis


@dataclass(frozen=True, slots=True)
class AvgPoolAttributes(PoolAttributes):
    """Beside what all pools have: with `count_padding` the padding's zeros count, but not what lies beyond it."""

    count_padding: bool = False


def infer(attributes: AvgPoolAttributes, types: Types) -> TensorType:
    require_flag(attributes.count_padding, "count_padding")
    return infer_pool(attributes, types)


def average_axes(attributes: AvgPoolAttributes, x: Shape) -> tuple[Axis, Axis]:
    """The axes of the pool, with how much of their padding counts."""
    return pool_axes(attributes, x, attributes.count_padding)


def reference(attributes: AvgPoolAttributes, operands: Arrays) -> Array:
    """Sums first along columns of pixels, then along rows; then one division by the number of pixels."""
    x = operands[0]
    height, width = average_axes(attributes, x.shape)
    sums = reduce_axis(reduce_axis(x, 1, height, np.add, 0.0), 2, width, np.add, 0.0)
    return np.divide(sums, pixels_seen(height, width), dtype=x.dtype)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """Each pixel of a window gets the gradient of its average, divided by the number of pixels."""
    return (g.dy.call("avg_pool_gradient", shape=g.operands[0].shape, **asdict(g.attributes)),)
    # lab 10 end


def _windows(attributes: AvgPoolAttributes, shapes: Shapes) -> tuple[Axis, Axis]:
    return average_axes(attributes, shapes[0])


def onnx(g: Call) -> str:
    """Where only some of the padding counts, that is zeros around the image, and what lies beyond is ONNX's own padding."""
    (x,), axes = g.operands, average_axes(g.attributes, g.types[0].shape)
    counted = [axis.counted == (axis.before, axis.after) for axis in axes]
    if all(counted) or not any(any(axis.counted) for axis in axes):
        return g.node("AveragePool", x, count_include_pad=int(all(counted)), **onnx_windows(*axes))
    top, left, bottom, right = (axis.counted[end] for end in (0, 1) for axis in axes)
    around = g.node("Pad", x, g.integers((0, 0, top, left, 0, 0, bottom, right), "pads"))
    beyond = [replace(axis, before=axis.before - axis.counted[0], after=axis.after - axis.counted[1]) for axis in axes]
    return g.node("AveragePool", around, count_include_pad=0, **onnx_windows(*beyond))


OP = OpDef(
    name="avg_pool",
    summary="the average of each window, channel by channel",
    documentation=(
        "A window of `size`, one every `stride` pixels. Without `stride` the windows lie side by side. Padding is given as for conv2d. "
        "A sum is divided by the number of the image's own pixels in the window; with `count_padding` also by those of the padding. With "
        "`ceil` a last window may reach beyond the padding, as for max_pool; what lies there never counts. TensorFlow: nn.avg_pool2d. "
        "ONNX: AveragePool, count_include_pad and ceil_mode (NCHW there)."
    ),
    operands=(Operand("x"),),
    attributes=AvgPoolAttributes,
    infer=infer,
    reference=reference,
    legalisation=Pooling("average"),
    facts=windowed(_windows, part=pool_part(_windows), keeps_parameters=False, terms=one_term, fuses_into=""),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        *(Example(example.title, AvgPoolAttributes(**asdict(example.attributes)), example.operands) for example in POOLS),
        Example("padding that counts", AvgPoolAttributes(3, 2, 1, count_padding=True), (f32(1, 5, 6, 3),)),
        Example("what lies beyond doesn't count", AvgPoolAttributes(3, 2, 1, True, True), (f32(1, 6, 7, 3),)),
    ),
)
