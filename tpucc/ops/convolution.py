"""convolution: conv2d, bias and activation in one. Internal: fusion makes it, and it becomes one convolutional layer."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import f32
from tpucc.ops import conv2d
from tpucc.ops.fused import Fused, fused
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Example, Matrix, Operand
from tpucc.ops.windows import Padding, Pair


@dataclass(frozen=True, slots=True)
class ConvolutionAttributes(Fused):
    """The activation fused into the convolution; `stride`, `padding`, `dilation` and `groups` are those of conv2d."""

    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1
    groups: int = 1


OP = fused(
    ConvolutionAttributes,
    lambda _: conv2d.OP,
    Form(conv2d.onnx, Layout.IMAGES),
    name="convolution",
    summary="activation(conv2d(x, w) + b)",
    documentation=(
        "A convolution fused with the bias and the activation after it. The bias may be missing. It becomes one convolutional layer, "
        "whose activation unit adds the bias and applies the function. ONNX: Conv, then the activation. Keras: Conv2D."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    legalisation=Matrix(),
    facts=conv2d.OP.facts,
    examples=(
        Example("one whole tile", ConvolutionAttributes(), (f32(1, 16, 16, 256), f32(1, 1, 256, 256), f32(256))),
        Example("ragged, with a clamp", ConvolutionAttributes("relu", stride=2, padding=1), (f32(2, 7, 9, 3), f32(3, 2, 3, 5), f32(5))),
        Example(
            "in groups", ConvolutionAttributes("relu", padding="same", dilation=2, groups=2), (f32(1, 5, 6, 4), f32(3, 2, 2, 6), f32(6))
        ),
        Example("with a table", ConvolutionAttributes("elu", (0.5,), (-4.0, 4.0)), (f32(1, 5, 6, 2), f32(3, 3, 2, 4))),
    ),
)
