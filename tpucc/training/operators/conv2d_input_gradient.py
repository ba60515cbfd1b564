"""conv2d_input_gradient: how a change of a convolution goes back to its image. Internal: the gradient of conv2d is made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.conv2d import Conv2dAttributes, conv_axes, conv_shape, require_groups
from tpucc.ops.conv_transpose2d import SWAPPED, spread, spread_products
from tpucc.ops.facts import Product, whole
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.parts import Shape, Shapes
from tpucc.ops.rules import require_f32, require_rank, require_shape
from tpucc.ops.windows import Padding, Pair
from tpucc.training.operators import gradient_operator, sized_images


@dataclass(frozen=True, slots=True)
class Conv2dGradientAttributes:
    """`shape` is the result's: the image's or the kernel's; `stride`, `padding`, `dilation` and `groups` are those of the convolution."""

    shape: tuple[int, int, int, int]
    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1
    groups: int = 1

    @property
    def forward(self) -> Conv2dAttributes:
        """The attributes of the convolution."""
        return Conv2dAttributes(self.stride, self.padding, self.dilation, self.groups)


def infer(attributes: Conv2dGradientAttributes, types: Types) -> TensorType:
    """`[N, H', W', F]` with a kernel `[R, S, C/groups, F]` becomes `[N, H, W, C]`."""
    dy, w = types
    require_f32(types)
    require_rank(w, 4, 1, "[height, width, channels in, channels out]")
    shape = require_four(attributes, "[batch, height, width, channels]")
    require_convolved(attributes, shape, w.shape, dy, 0)
    return f32(*shape)


def require_four(attributes: Conv2dGradientAttributes, layout: str) -> Shape:
    """The attribute `shape`, if it has four sizes; `layout` names them. Raises `RuleError`."""
    shape = require_shape(attributes.shape)
    if len(shape) != 4:
        raise RuleError("E0303", f"shape must have 4 sizes, {layout}, found {len(shape)}", about=("shape",))
    return shape


def require_convolved(attributes: Conv2dGradientAttributes, x: Shape, w: Shape, dy: TensorType, index: int) -> None:
    """Raises `RuleError` unless `dy`, operand `index`, has the shape of the convolution of an image `x` with a kernel `w`."""
    require_groups(attributes.groups, x, w, ("shape", 1 - index))
    if x[3] != w[2] * attributes.groups:
        takes = w[2] * attributes.groups
        raise RuleError("E0311", f"channels differ: the image has {x[3]:,}, and the kernel takes {takes:,}", about=("shape", 1 - index))
    expected = f32(*conv_shape(attributes.forward, x, w))
    if dy.plain() != expected:
        raise RuleError("E0302", f"the gradient of this convolution is {expected}, found {dy.brief}", about=(index,))


def _gradient(attributes: Conv2dGradientAttributes, operands: Arrays, product: Callable[[Array, Array], Array]) -> Array:
    """dy spread over the windows of the image, by the kernel with its channels exchanged."""
    dy, w = operands
    axes = conv_axes(attributes.forward, require_shape(attributes.shape), w.shape)
    return spread(dy, w.transpose(SWAPPED), axes, attributes.groups, product)


def products(attributes: Conv2dGradientAttributes, shapes: Shapes) -> Sequence[Product]:
    dy, w = shapes
    axes = conv_axes(attributes.forward, require_shape(attributes.shape), w)
    return spread_products(dy, tuple(w[axis] for axis in SWAPPED), axes, attributes.groups)


OP = gradient_operator(
    name="conv2d_input_gradient",
    summary="the gradient of a convolution with respect to its image",
    documentation=(
        "`[N, H', W', F]` with the kernel `[R, S, C / groups, F]` becomes `[N, H, W, C]`, which is also known as a transposed convolution. "
        "The kernel's values go back to the pixels that they met; the other attributes are those of the conv2d. TensorFlow: "
        "nn.conv2d_transpose. ONNX: ConvTranspose (NCHW there)."
    ),
    operands=(Operand("dy"), Operand("w")),
    attributes=Conv2dGradientAttributes,
    infer=infer,
    reference=lambda attributes, operands: _gradient(attributes, operands, np.matmul),
    legalisation=OnHost("the device's kernels are constants, and training changes them"),
    facts=whole(batch=sized_images, products=products),
    floats=Defined(lambda attributes, operands, arithmetic: _gradient(attributes, operands, arithmetic.product)),
    examples=(
        Example("one whole tile", Conv2dGradientAttributes((1, 4, 4, 256)), (f32(1, 4, 4, 256), f32(1, 1, 256, 256))),
        Example("ragged", Conv2dGradientAttributes((2, 7, 9, 3), 2, "same"), (f32(2, 4, 5, 5), f32(3, 2, 3, 5))),
        Example("padding by hand", Conv2dGradientAttributes((1, 5, 6, 2), (1, 3), (2, 0, 1, 3)), (f32(1, 5, 3, 4), f32(3, 3, 2, 4))),
        Example("pixels that no window sees", Conv2dGradientAttributes((1, 6, 5, 2), (4, 3)), (f32(1, 2, 2, 3), f32(2, 1, 2, 3))),
        Example("dilated", Conv2dGradientAttributes((1, 9, 8, 2), (2, 3), 1, (3, 2)), (f32(1, 4, 2, 3), f32(2, 3, 2, 3))),
        Example("in groups", Conv2dGradientAttributes((1, 5, 4, 6), 1, "same", groups=3), (f32(1, 5, 4, 9), f32(3, 2, 2, 9))),
        Example("a border around single pixels", Conv2dGradientAttributes((1, 2, 2, 3), 1, 1), (f32(1, 4, 4, 2), f32(1, 1, 3, 2))),
    ),
)
