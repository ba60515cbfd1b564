"""argmax: where the largest value along an axis is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Batch, Case, Division, beside
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Stops
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, Types
from tpucc.ops.rules import require_axis, require_f32


@dataclass(frozen=True, slots=True)
class ArgmaxAttributes:
    """`axis`: the one that is searched, and dropped; negative ones count from the end."""

    axis: int = -1


def infer(attributes: ArgmaxAttributes, types: Types) -> TensorType:
    require_f32(types)
    axis = require_axis(attributes.axis, types[0].rank)
    return TensorType("i32", types[0].shape[:axis] + types[0].shape[axis + 1 :])


def reference(attributes: ArgmaxAttributes, operands: Arrays) -> Array:
    return np.asarray(operands[0].argmax(axis=attributes.axis)).astype(np.int32)


def _batch(case: Case) -> Division:
    axis, rank = case.attributes.axis, case.operands[0].type.rank
    batch = beside(case, axis)
    return Division(Batch(batch.axis - (axis % rank < batch.axis), batch.inner))


def onnx(g: Call) -> str:
    """ONNX's places are int64."""
    return g.node("Cast", g.node("ArgMax", *g.operands, axis=g.attributes.axis, keepdims=0), to="i32")


OP = OpDef(
    name="argmax",
    summary="the index of the largest value along an axis",
    documentation=(
        "The result is i32, without the axis `axis`. Of equal values the first counts. ONNX: ArgMax with keepdims=0. NumPy: argmax."
    ),
    operands=(Operand("x"),),
    attributes=ArgmaxAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device compares no values with their neighbours"),
    facts=whole(batch=_batch),
    gradient=Stops("it gives the place of a value, which is an integer"),
    floats=Ieee(),
    onnx=Form(onnx),
    examples=(
        Example("one whole tile", ArgmaxAttributes(), (f32(8, 256),)),
        Example("ragged, along the first axis", ArgmaxAttributes(0), (f32(3, 5, 257),)),
    ),
)
