"""global_avg_pool: the average of each channel over the whole image."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops.axis import Axis
from tpucc.ops.facts import one_term, windowed
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OpDef, Operand, Pooling, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes, all_of
from tpucc.ops.rules import require_f32, require_rank


def infer(_: NoAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` becomes `[N, C]`."""
    require_f32(types)
    require_rank(types[0], 4, 0, "[batch, height, width, channels]")
    return f32(types[0].shape[0], types[0].shape[3])


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The machine's sum over rows and columns, divided by the number of pixels."""
    x = operands[0]
    return np.asarray(arithmetic.sum(x, (1, 2)) / x.dtype.type(x.shape[1] * x.shape[2]))


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy / (H·W), at every pixel."""
    images, height, width, channels = g.operands[0].shape
    return ((g.dy / (height * width)).reshape(images, 1, 1, channels).repeated_to(g.operands[0].shape),)
    # lab 10 end


def _windows(_: NoAttributes, shapes: Shapes) -> tuple[Axis, Axis]:
    """One window: the image."""
    height, width = shapes[0][1:3]
    return Axis(height, height, height, 0, 0), Axis(width, width, width, 0, 0)


def _part(attributes: NoAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part:
    """Some channels of some images, and of these all pixels."""
    images, channels = bounds
    return Part(((images, *all_of(shapes[0])[1:3], channels),), attributes)


def onnx(g: Call) -> str:
    """ONNX keeps two axes of size 1."""
    return g.node("Flatten", g.node("GlobalAveragePool", *g.operands), axis=1)


OP = OpDef(
    name="global_avg_pool",
    summary="the average of each channel over the whole image",
    documentation=(
        "`[N, H, W, C]` becomes `[N, C]`. Keras: GlobalAveragePooling2D. ONNX: GlobalAveragePool, which keeps two axes of size 1."
    ),
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=Pooling("average"),
    facts=windowed(_windows, part=_part, keeps_parameters=False, terms=one_term, fuses_into=""),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 7, 7, 256),)),
        Example("ragged", NoAttributes(), (f32(3, 5, 4, 257),)),
    ),
)
