"""max_pool: the largest value of each window."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from tpucc.ops.facts import one_term, windowed
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Ieee, OpDef, Operand, Pooling
from tpucc.ops.windows import POOLS, PoolAttributes, infer_pool, onnx_windows, pool_axes, pool_part, pool_windows, reduce_axis


def reference(attributes: PoolAttributes, operands: Arrays) -> Array:
    """First along columns of pixels, then along rows: as many steps as the window's sides, not its area."""
    x = operands[0]
    height, width = pool_axes(attributes, x.shape)
    return reduce_axis(reduce_axis(x, 1, height, np.maximum, -np.inf), 2, width, np.maximum, -np.inf)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """The largest pixel of each window gets the gradient of its result: the first of those that are equal."""
    return (g.operands[0].call("max_pool_gradient", g.result, g.dy, **asdict(g.attributes)),)
    # lab 10 end


def onnx(g: Call) -> str:
    return g.node("MaxPool", *g.operands, **onnx_windows(*pool_axes(g.attributes, g.types[0].shape)))


OP = OpDef(
    name="max_pool",
    summary="the largest value of each window, channel by channel",
    documentation=(
        "A window of `size`, one every `stride` pixels. Without `stride` the windows lie side by side. Padding is given as for conv2d. "
        "Only the image's own pixels count. With `ceil` a last window may reach beyond the padding, as long as it begins in the image or "
        "the padding before it. TensorFlow: nn.max_pool2d. ONNX: MaxPool (NCHW there)."
    ),
    operands=(Operand("x"),),
    attributes=PoolAttributes,
    infer=infer_pool,
    reference=reference,
    legalisation=Pooling("max"),
    facts=windowed(pool_windows, part=pool_part(pool_windows), keeps_parameters=True, terms=one_term, fuses_into=""),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(onnx, Layout.IMAGES),
    examples=POOLS,
)
