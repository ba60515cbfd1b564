"""broadcast: values repeated to a larger shape. Internal: gradients of reductions make it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Batch, Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import broadcast, require_f32, require_shape


@dataclass(frozen=True, slots=True)
class BroadcastAttributes:
    """`shape`: the result's sizes."""

    shape: tuple[int, ...]


def infer(attributes: BroadcastAttributes, types: Types) -> TensorType:
    require_f32(types)
    shape = require_shape(attributes.shape)
    if broadcast(types[0].shape, shape, (0, "shape")) != shape:
        raise RuleError("E0302", "the shape is smaller than the values that are repeated", about=(0, "shape"))
    return f32(*shape)


def reference(attributes: BroadcastAttributes, operands: Arrays) -> Array:
    return np.broadcast_to(operands[0], require_shape(attributes.shape))


def gradient(g: Backward) -> Gradients:
    """dx = dy, summed over the axes along which x was repeated."""
    return (g.dy.summed_to(g.operands[0].shape),)


def _batch(case: Case) -> Division:
    """Axes are counted from the end; the one of the batch doesn't repeat."""
    batch, x = case.only(0), case.operands[0].type
    axis = batch.axis + case.node.type.rank - x.rank
    if case.node.type.shape[axis] != x.shape[batch.axis]:
        raise MixedError("broadcast repeats the batch")
    result = Batch(axis, batch.inner)
    return Division(result, attributes=BroadcastAttributes(case.part(case.node.type.shape, result)))


OP = OpDef(
    name="broadcast",
    summary="values repeated to a larger shape",
    documentation="NumPy's broadcasting: axes of size 1 repeat, and so do those missing in front. NumPy: broadcast_to. ONNX: Expand.",
    operands=(Operand("x"),),
    attributes=BroadcastAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("it is part of training, for which the device has no arithmetic"),
    facts=whole(batch=_batch),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Expand", *g.operands, g.integers(g.result.shape, "shape"))),
    examples=(
        Example("one whole tile", BroadcastAttributes((8, 256)), (f32(1, 256),)),
        Example("ragged", BroadcastAttributes((3, 5, 57)), (f32(5, 1),)),
        Example("a scalar", BroadcastAttributes((2, 3)), (f32(),)),
        Example("nothing repeats", BroadcastAttributes((2, 3)), (f32(2, 3),)),
    ),
)
