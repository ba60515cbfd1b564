"""global_avg_pool: the average of each channel over the whole image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ir.types import TensorType, f32
from tpucc.ops.opdef import Array, Example, OpDef, Operand, Pooling
from tpucc.ops.rules import require_f32, require_rank


def infer(_: NoAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[N, H, W, C]` becomes `[N, C]`."""
    require_f32(types)
    require_rank(types[0], 4, 0, "[batch, height, width, channels]")
    return f32(types[0].shape[0], types[0].shape[3])


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0].mean(axis=(1, 2), dtype=np.float32))


OP = OpDef(
    name="global_avg_pool",
    summary="the average of each channel over the whole image",
    documentation=(
        "`[N, H, W, C]` becomes `[N, C]`. Keras: GlobalAveragePooling2D. ONNX: GlobalAveragePool, which keeps two axes of size 1."
    ),
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=Pooling("average"),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 7, 7, 256),)),
        Example("ragged", NoAttributes(), (f32(3, 5, 4, 257),)),
    ),
)
