"""max_pool: the largest value of each window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.types import f32
from tpucc.ops.facts import one_term, windowed
from tpucc.ops.opdef import Array, Example, OpDef, Operand, Pooling
from tpucc.ops.windows import PoolAttributes, infer_pool, pool_axes, pool_windows, reduce_axis, window_part


def reference(attributes: PoolAttributes, operands: Sequence[Array]) -> Array:
    """First along columns of pixels, then along rows: as many steps as the window's sides, not its area."""
    x = operands[0]
    height, width = pool_axes(attributes, x.shape)
    return reduce_axis(reduce_axis(x, 1, height, np.maximum, -np.inf), 2, width, np.maximum, -np.inf)


OP = OpDef(
    name="max_pool",
    summary="the largest value of each window, channel by channel",
    documentation=(
        "Windows of `size`, one every `stride` pixels (side by side unless said). Padding, as for conv2d, never wins: only real pixels "
        "count. TensorFlow: nn.max_pool2d. ONNX: MaxPool (NCHW there)."
    ),
    operands=(Operand("x"),),
    attributes=PoolAttributes,
    infer=infer_pool,
    reference=reference,
    legalisation=Pooling("max"),
    facts=windowed(pool_windows, part=window_part(pool_windows), keeps_parameters=True, terms=one_term, fuses_into=""),
    examples=(
        Example("one whole tile", PoolAttributes(), (f32(1, 32, 32, 256),)),
        Example("ragged", PoolAttributes(3, 2, "same"), (f32(2, 7, 8, 5),)),
        Example("padding by hand", PoolAttributes((3, 2), (1, 2), (2, 0, 1, 1)), (f32(1, 5, 6, 3),)),
    ),
)
