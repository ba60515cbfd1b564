"""avg_pool: the average of each window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ops.facts import one_term, windowed
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, OpDef, Operand, Pooling
from tpucc.ops.windows import POOLS, PoolAttributes, infer_pool, pixels_seen, pool_axes, pool_windows, reduce_axis, window_part


def reference(attributes: PoolAttributes, operands: Sequence[Array]) -> Array:
    """Sums first along columns of pixels, then along rows; then one division by the number of real pixels."""
    x = operands[0]
    height, width = pool_axes(attributes, x.shape)
    sums = reduce_axis(reduce_axis(x, 1, height, np.add, 0.0), 2, width, np.add, 0.0)
    return np.divide(sums, pixels_seen(height, width), dtype=x.dtype)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """Each pixel of a window gets the gradient of its average, divided by the number of pixels."""
    size, stride, padding = g.attributes.size, g.attributes.stride, g.attributes.padding
    return (g.dy.call("avg_pool_gradient", shape=g.operands[0].shape, size=size, stride=stride, padding=padding),)
    # lab 10 end


OP = OpDef(
    name="avg_pool",
    summary="the average of each window, channel by channel",
    documentation=(
        "A window of `size`, one every `stride` pixels. Without `stride` the windows lie side by side. Padding is given as for conv2d. "
        "A sum is divided by the number of the image's own pixels in the window. TensorFlow: nn.avg_pool2d. ONNX: AveragePool with "
        "count_include_pad=0 (NCHW there)."
    ),
    operands=(Operand("x"),),
    attributes=PoolAttributes,
    infer=infer_pool,
    reference=reference,
    legalisation=Pooling("average"),
    facts=windowed(pool_windows, part=window_part(pool_windows), keeps_parameters=False, terms=one_term, fuses_into=""),
    gradient=Rule(gradient),
    floats=Ieee(),
    examples=POOLS,
)
