"""transposed_convolution: conv_transpose2d, bias and activation in one. Internal: fusion makes it, and it becomes convolutional layers."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import f32
from tpucc.ops import conv_transpose2d
from tpucc.ops.fused import Fused, fused
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Example, Matrix, Operand
from tpucc.ops.windows import Padding, Pair


@dataclass(frozen=True, slots=True)
class TransposedConvolutionAttributes(Fused):
    """The activation fused into the transposed convolution; `stride` and `padding` are those of conv_transpose2d."""

    stride: Pair = 1
    padding: Padding = "valid"


OP = fused(
    TransposedConvolutionAttributes,
    lambda _: conv_transpose2d.OP,
    Form(conv_transpose2d.onnx, Layout.IMAGES),
    name="transposed_convolution",
    summary="activation(conv_transpose2d(x, w) + b)",
    documentation=(
        "A transposed convolution fused with the bias and the activation after it. The bias may be missing. It becomes a convolutional "
        "layer for each phase of its stride, and copies that put their pixels between one another. Keras: Conv2DTranspose."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    legalisation=Matrix(),
    facts=conv_transpose2d.FACTS,
    examples=(
        Example("one whole tile", TransposedConvolutionAttributes("relu", stride=2), (f32(1, 8, 8, 256), f32(2, 2, 256, 256), f32(256))),
        Example("ragged", TransposedConvolutionAttributes(stride=2, padding="same"), (f32(2, 4, 5, 3), f32(3, 2, 3, 5), f32(5))),
        Example("with a table", TransposedConvolutionAttributes("elu", (0.5,), (-4.0, 4.0), 1, 1), (f32(1, 5, 6, 2), f32(3, 3, 2, 4))),
    ),
)
