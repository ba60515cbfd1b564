"""convolution: conv2d, bias and activation in one. Internal: fusion makes it, and it becomes one convolutional layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir.types import TensorType, f32
from tpucc.ops import conv2d
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.floats import Defined
from tpucc.ops.fused import Fused, defined_alone, defined_fused, infer_fused, onnx_activated, reference_fused
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Example, Matrix, OpDef, Operand
from tpucc.ops.windows import Padding, Pair


@dataclass(frozen=True, slots=True)
class ConvolutionAttributes(Fused):
    """The activation fused into the convolution; `stride`, `padding`, `dilation` and `groups` are those of conv2d."""

    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1
    groups: int = 1


def unfused(attributes: ConvolutionAttributes) -> Conv2dAttributes:
    """The attributes of the convolution alone."""
    return Conv2dAttributes(attributes.stride, attributes.padding, attributes.dilation, attributes.groups)


def infer(attributes: ConvolutionAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[N, H, W, C]` with a kernel `[R, S, C, F]` and a bias `[F]` becomes `[N, H', W', F]`."""
    return infer_fused(attributes, conv2d.infer(unfused(attributes), types[:2]), types[2:])


def reference(attributes: ConvolutionAttributes, operands: Sequence[Array]) -> Array:
    return reference_fused(attributes, conv2d.reference(unfused(attributes), operands[:2]), operands[2:])


def defined(attributes: ConvolutionAttributes, operands: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """One operator after the other, each as it is computed alone."""
    result = defined_alone(conv2d.OP, unfused(attributes), operands[:2], arithmetic)
    return defined_fused(attributes, result, operands[2:], arithmetic)


OP = OpDef(
    name="convolution",
    summary="activation(conv2d(x, w) + b)",
    documentation=(
        "A convolution fused with the bias and the activation after it. The bias may be missing. It becomes one convolutional layer, "
        "whose activation unit adds the bias and applies the function. ONNX: Conv, then the activation. Keras: Conv2D."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    attributes=ConvolutionAttributes,
    infer=infer,
    reference=reference,
    legalisation=Matrix(),
    facts=conv2d.OP.facts,
    gradient=Missing("made by fusion, after differentiation"),
    floats=Defined(defined),
    onnx=Form(lambda g: onnx_activated(g, conv2d.onnx(g)), Layout.IMAGES),
    examples=(
        Example("one whole tile", ConvolutionAttributes(), (f32(1, 16, 16, 256), f32(1, 1, 256, 256), f32(256))),
        Example("ragged, with a clamp", ConvolutionAttributes("relu", stride=2, padding=1), (f32(2, 7, 9, 3), f32(3, 2, 3, 5), f32(5))),
        Example(
            "in groups", ConvolutionAttributes("relu", padding="same", dilation=2, groups=2), (f32(1, 5, 6, 4), f32(3, 2, 2, 6), f32(6))
        ),
        Example("with a table", ConvolutionAttributes("elu", (0.5,), (-4.0, 4.0)), (f32(1, 5, 6, 2), f32(3, 3, 2, 4))),
    ),
)
