"""transposed_convolution: conv_transpose2d, bias and activation in one. Internal: fusion makes it, and it becomes convolutional layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir.types import TensorType, f32
from tpucc.ops import conv_transpose2d
from tpucc.ops.conv_transpose2d import ConvTranspose2dAttributes
from tpucc.ops.floats import Defined
from tpucc.ops.fused import Fused, defined_alone, defined_fused, infer_fused, onnx_activated, reference_fused
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Example, Matrix, OpDef, Operand
from tpucc.ops.windows import Padding, Pair


@dataclass(frozen=True, slots=True)
class TransposedConvolutionAttributes(Fused):
    """The activation fused into the transposed convolution; `stride` and `padding` are those of conv_transpose2d."""

    stride: Pair = 1
    padding: Padding = "valid"


def unfused(attributes: TransposedConvolutionAttributes) -> ConvTranspose2dAttributes:
    """The attributes of the transposed convolution alone."""
    return ConvTranspose2dAttributes(attributes.stride, attributes.padding)


def infer(attributes: TransposedConvolutionAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[N, H, W, C]` with a kernel `[R, S, C, F]` and a bias `[F]` becomes `[N, H', W', F]`."""
    return infer_fused(attributes, conv_transpose2d.infer(unfused(attributes), types[:2]), types[2:])


def reference(attributes: TransposedConvolutionAttributes, operands: Sequence[Array]) -> Array:
    return reference_fused(attributes, conv_transpose2d.reference(unfused(attributes), operands[:2]), operands[2:])


def defined(attributes: TransposedConvolutionAttributes, operands: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """One operator after the other, each as it is computed alone."""
    result = defined_alone(conv_transpose2d.OP, unfused(attributes), operands[:2], arithmetic)
    return defined_fused(attributes, result, operands[2:], arithmetic)


OP = OpDef(
    name="transposed_convolution",
    summary="activation(conv_transpose2d(x, w) + b)",
    documentation=(
        "A transposed convolution fused with the bias and the activation after it. The bias may be missing. It becomes a convolutional "
        "layer for each phase of its stride, and copies that put their pixels between one another. Keras: Conv2DTranspose."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    attributes=TransposedConvolutionAttributes,
    infer=infer,
    reference=reference,
    legalisation=Matrix(),
    facts=conv_transpose2d.FACTS,
    gradient=Missing("made by fusion, after differentiation"),
    floats=Defined(defined),
    onnx=Form(lambda g: onnx_activated(g, conv_transpose2d.onnx(g)), Layout.IMAGES),
    examples=(
        Example("one whole tile", TransposedConvolutionAttributes("relu", stride=2), (f32(1, 8, 8, 256), f32(2, 2, 256, 256), f32(256))),
        Example("ragged", TransposedConvolutionAttributes(stride=2, padding="same"), (f32(2, 4, 5, 3), f32(3, 2, 3, 5), f32(5))),
        Example("with a table", TransposedConvolutionAttributes("elu", (0.5,), (-4.0, 4.0), 1, 1), (f32(1, 5, 6, 2), f32(3, 3, 2, 4))),
    ),
)
