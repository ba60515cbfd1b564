"""avg_pool_gradient: how a change of averages goes back to the image. Internal: the gradient of avg_pool is made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops import avg_pool
from tpucc.ops.avg_pool import AvgPoolAttributes, average_axes
from tpucc.ops.axis import Axis
from tpucc.ops.facts import whole
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, Operand, RuleError, Types
from tpucc.ops.rules import require_f32, require_shape
from tpucc.ops.windows import Padding, Pair, pixels_seen
from tpucc.training.operators import gradient_operator, sized_images


@dataclass(frozen=True, slots=True)
class AvgPoolGradientAttributes:
    """`shape` is the image's; the others are those of the pool."""

    shape: tuple[int, int, int, int]
    size: Pair = 2
    stride: Pair | None = None
    padding: Padding = "valid"
    ceil: bool = False
    count_padding: bool = False

    @property
    def forward(self) -> AvgPoolAttributes:
        """The attributes of the pool."""
        return AvgPoolAttributes(self.size, self.stride, self.padding, self.ceil, self.count_padding)


def infer(attributes: AvgPoolGradientAttributes, types: Types) -> TensorType:
    """`[N, H', W', C]` becomes `[N, H, W, C]`."""
    require_f32(types)
    shape = require_shape(attributes.shape)
    if len(shape) != 4:
        raise RuleError("E0303", f"shape must have 4 sizes, [batch, height, width, channels], found {len(shape)}", about=("shape",))
    pooled = avg_pool.infer(attributes.forward, (f32(*shape),))
    if types[0].plain() != pooled:
        raise RuleError("E0302", f"the gradient of this pool is {pooled}, found {types[0].brief}", about=(0,))
    return f32(*shape)


def _axes(attributes: AvgPoolGradientAttributes) -> tuple[Axis, Axis]:
    return average_axes(attributes.forward, require_shape(attributes.shape))


def reference(attributes: AvgPoolGradientAttributes, operands: Arrays) -> Array:
    """One division by the number of pixels; then along rows and along columns of pixels: the way back of the pool."""
    height, width = _axes(attributes)
    shares = np.divide(operands[0], pixels_seen(height, width), dtype=operands[0].dtype)
    return _spread(_spread(shares, 2, width), 1, height)


def _spread(x: Array, dimension: int, axis: Axis) -> Array:
    """Each value of `x` [N, H', W', C] at all the pixels of its window along one dimension, which is `axis`; where windows overlap, sums.

    A pixel's sum starts at 0, and goes in ascending order of its position in the window: from the last window to the first.
    """
    result = np.zeros_like(x, order="C", subok=False, shape=(*x.shape[:dimension], axis.size, *x.shape[dimension + 1 :]))
    before = (slice(None),) * dimension
    for position in axis.positions:
        outputs, pixels = axis.tap(position)
        result[(*before, pixels)] += x[(*before, outputs)]
    return result


OP = gradient_operator(
    name="avg_pool_gradient",
    summary="the gradient of avg_pool",
    documentation=(
        "`[N, H', W', C]` becomes the `[N, H, W, C]` of the image. Each window hands its gradient, divided by the number of pixels that "
        "count, to its real ones; where windows overlap, they add up. TensorFlow: raw_ops.AvgPoolGrad."
    ),
    operands=(Operand("dy"),),
    attributes=AvgPoolGradientAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device pools, but has no way back"),
    facts=whole(batch=sized_images),
    examples=(
        Example("one whole tile", AvgPoolGradientAttributes((1, 8, 8, 256)), (f32(1, 4, 4, 256),)),
        Example("ragged", AvgPoolGradientAttributes((2, 7, 8, 5), 3, 2, "same"), (f32(2, 4, 4, 5),)),
        Example("padding by hand", AvgPoolGradientAttributes((1, 5, 6, 3), (3, 2), (1, 2), (2, 0, 1, 1)), (f32(1, 5, 4, 3),)),
        Example("beyond the end", AvgPoolGradientAttributes((1, 6, 7, 3), 3, 2, 1, True, True), (f32(1, 4, 4, 3),)),
        Example("pixels that no window sees", AvgPoolGradientAttributes((1, 6, 7, 2), 2, 3), (f32(1, 2, 2, 2),)),
    ),
)
