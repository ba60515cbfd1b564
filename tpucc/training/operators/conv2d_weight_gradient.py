"""conv2d_weight_gradient: how a change of a convolution goes back to its kernel. Internal: the gradient of conv2d is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.conv2d import conv_axes, patch_rows
from tpucc.ops.facts import Product, whole
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, Operand, Types
from tpucc.ops.parts import Shapes
from tpucc.ops.rules import require_f32, require_pair, require_rank, require_shape
from tpucc.ops.windows import MAX_STEP, of_groups, patches_of
from tpucc.training.operators import added_up, gradient_operator
from tpucc.training.operators.conv2d_input_gradient import Conv2dGradientAttributes, require_convolved, require_four


def infer(attributes: Conv2dGradientAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` with `[N, H', W', F]` becomes `[R, S, C/groups, F]`."""
    x, dy = types
    require_f32(types)
    require_rank(x, 4, 0, "[batch, height, width, channels]")
    shape = require_four(attributes, "[height, width, channels in, channels out]")
    require_convolved(attributes, x.shape, shape, dy, 1)
    return f32(*shape)


def _gradient(attributes: Conv2dGradientAttributes, operands: Arrays, product: Callable[[Array, Array], Array]) -> Array:
    """The product of the patches, transposed, [R·S·C, N·H'·W'] with dy [N·H'·W', F]: depth in the order image, row, column.

    Each group of channels is a product of its own.
    """
    x, dy = operands
    shape, groups = require_shape(attributes.shape), attributes.groups
    patches = patches_of(x, *conv_axes(attributes.forward, x.shape, shape))
    rows = of_groups(patches.reshape(-1, patches.shape[3]), shape[0] * shape[1], groups)
    changes = of_groups(dy.reshape(-1, shape[3]), 1, groups)
    return np.concatenate([product(group.T, change) for group, change in zip(rows, changes, strict=True)], axis=1).reshape(shape)


def products(attributes: Conv2dGradientAttributes, shapes: Shapes) -> Sequence[Product]:
    r, s, channels, filters = require_shape(attributes.shape)
    pixels, groups = math.prod(shapes[1][:3]), attributes.groups
    dilation = require_pair(attributes.dilation, "dilation", MAX_STEP)[1]
    return (Product(r * s * channels, pixels, filters // groups, groups, patch_rows(pixels, (r, s), channels, dilation)),)


OP = gradient_operator(
    name="conv2d_weight_gradient",
    summary="the gradient of a convolution with respect to its kernel",
    documentation=(
        "`[N, H, W, C]` with `[N, H', W', F]` becomes `[R, S, C / groups, F]`: for each kernel position the pixels that it met, times "
        "what came of them, added up over the pixels and the batch. The other attributes are those of the conv2d. TensorFlow: "
        "raw_ops.Conv2DBackpropFilter."
    ),
    operands=(Operand("x"), Operand("dy")),
    attributes=Conv2dGradientAttributes,
    infer=infer,
    reference=lambda attributes, operands: _gradient(attributes, operands, np.matmul),
    legalisation=OnHost("the device multiplies by constants, and here both sides are values"),
    facts=whole(batch=added_up, products=products),
    floats=Defined(lambda attributes, operands, arithmetic: _gradient(attributes, operands, arithmetic.product)),
    examples=(
        Example("one whole tile", Conv2dGradientAttributes((1, 1, 256, 256)), (f32(1, 4, 4, 256), f32(1, 4, 4, 256))),
        Example("ragged", Conv2dGradientAttributes((3, 2, 3, 5), 2, "same"), (f32(2, 7, 9, 3), f32(2, 4, 5, 5))),
        Example("padding by hand", Conv2dGradientAttributes((3, 3, 2, 4), (1, 3), (2, 0, 1, 3)), (f32(1, 5, 6, 2), f32(1, 5, 3, 4))),
        Example("pixels that no window sees", Conv2dGradientAttributes((2, 1, 2, 3), (4, 3)), (f32(1, 6, 5, 2), f32(1, 2, 2, 3))),
        Example("dilated", Conv2dGradientAttributes((2, 3, 2, 3), (2, 3), 1, (3, 2)), (f32(1, 9, 8, 2), f32(1, 4, 2, 3))),
        Example("in groups", Conv2dGradientAttributes((3, 2, 2, 9), 1, "same", groups=3), (f32(1, 5, 4, 6), f32(1, 5, 4, 9))),
        Example("a border around single pixels", Conv2dGradientAttributes((1, 1, 3, 2), 1, 1), (f32(1, 2, 2, 3), f32(1, 4, 4, 2))),
    ),
)
