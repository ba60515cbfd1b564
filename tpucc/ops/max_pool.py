"""max_pool: the largest value of each window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ops.facts import one_term, windowed
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, OpDef, Operand, Pooling
from tpucc.ops.windows import POOLS, PoolAttributes, infer_pool, pool_axes, pool_windows, reduce_axis, window_part


def reference(attributes: PoolAttributes, operands: Sequence[Array]) -> Array:
    """First along columns of pixels, then along rows: as many steps as the window's sides, not its area."""
    x = operands[0]
    height, width = pool_axes(attributes, x.shape)
    return reduce_axis(reduce_axis(x, 1, height, np.maximum, -np.inf), 2, width, np.maximum, -np.inf)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """The largest pixel of each window gets the gradient of its result: the first of those that are equal."""
    size, stride, padding = g.attributes.size, g.attributes.stride, g.attributes.padding
    return (g.operands[0].call("max_pool_gradient", g.result, g.dy, size=size, stride=stride, padding=padding),)
    # lab 10 end


OP = OpDef(
    name="max_pool",
    summary="the largest value of each window, channel by channel",
    documentation=(
        "A window of `size`, one every `stride` pixels. Without `stride` the windows lie side by side. Padding is given as for conv2d. "
        "Only the image's own pixels count. TensorFlow: nn.max_pool2d. ONNX: MaxPool (NCHW there)."
    ),
    operands=(Operand("x"),),
    attributes=PoolAttributes,
    infer=infer_pool,
    reference=reference,
    legalisation=Pooling("max"),
    facts=windowed(pool_windows, part=window_part(pool_windows), keeps_parameters=True, terms=one_term, fuses_into=""),
    gradient=Rule(gradient),
    floats=Ieee(),
    examples=POOLS,
)
