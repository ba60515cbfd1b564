"""concat: tensors one after the other along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import joined
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Backward, Gradients, Rule, Value
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Rearrangement, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes
from tpucc.ops.rules import require_axis, require_sizes, reshaped


@dataclass(frozen=True, slots=True)
class ConcatAttributes:
    """`axis`: the one along which the tensors are joined; negative ones count from the end."""

    axis: int = -1


def infer(attributes: ConcatAttributes, types: Types) -> TensorType:
    """Sizes add up along the axis; all others, and the data types, are the same."""
    if not types:
        raise RuleError("E0314", "there is nothing to join", help="concat takes a list of at least one tensor: concat([a, b])")
    first = types[0]
    axis = require_axis(attributes.axis, first.rank)
    for index, other in enumerate(types[1:], 1):
        _require_fit(first, other, axis, index)
    shape = (*first.shape[:axis], sum(type_.shape[axis] for type_ in types), *first.shape[axis + 1 :])
    require_sizes(shape, 0)
    return reshaped(first, shape)


def _require_fit(first: TensorType, other: TensorType, axis: int, index: int) -> None:
    if other.dtype != first.dtype:
        raise RuleError("E0305", "joined tensors must have one data type", about=(0, index))
    if other.dtype != "f32" and other.quantisation != first.quantisation:
        raise RuleError("E0315", "joined integers must have one scale and zero point", about=(0, index), help="dequantize both first")
    if other.rank != first.rank:
        raise RuleError("E0314", "joined tensors must have as many dimensions", about=(0, index))
    for other_axis, (m, n) in enumerate(zip(first.shape, other.shape, strict=True)):
        if m != n and other_axis != axis:
            mend = f"along axis {axis}, all other sizes must be equal"
            raise RuleError("E0314", f"sizes of axis {other_axis} differ: {m} and {n}", about=(0, index), help=mend)


def reference(attributes: ConcatAttributes, operands: Arrays) -> Array:
    return np.concatenate(operands, axis=attributes.axis)


def _part(attributes: ConcatAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """The same part of every operand; None along the axis that is joined."""
    axis = attributes.axis % len(result)
    if bounds[axis] != (0, result[axis]):
        return None
    return Part(tuple((*bounds[:axis], (0, shape[axis]), *bounds[axis + 1 :]) for shape in shapes), attributes)


def gradient(g: Backward) -> Gradients:
    """The gradient of each tensor is its part of dy."""
    axis = g.attributes.axis % g.result.type.rank
    stops = list(accumulate(x.shape[axis] for x in g.operands))
    return [_between(g.dy, axis, stop - x.shape[axis], stop) for x, stop in zip(g.operands, stops, strict=True)]


def _between(x: Value, axis: int, start: int, stop: int) -> Value:
    """`start:stop` of an axis."""
    starts = tuple(start if a == axis else 0 for a in range(x.type.rank))
    stops = tuple(stop if a == axis else size for a, size in enumerate(x.shape))
    return x.call("slice", starts=starts, stops=stops)


OP = OpDef(
    name="concat",
    summary="tensors joined along an axis",
    documentation=(
        "`concat([a, b])` puts the columns of `b` behind those of `a`. It takes any number of tensors. ONNX: Concat. Keras: Concatenate."
    ),
    operands=(Operand("tensors", many=True),),
    attributes=ConcatAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(lambda attributes, shapes: ""),
    facts=moving(
        Values.JOINED, part=_part, batch=lambda case: joined(case, case.attributes.axis % case.node.type.rank), keeps_parameters=False
    ),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Concat", *g.operands, axis=g.axis(g.attributes.axis)), Layout.ANY),
    examples=(
        Example("one whole tile", ConcatAttributes(), (f32(8, 128), f32(8, 128))),
        Example("ragged", ConcatAttributes(1), (f32(3, 5, 257), f32(3, 1, 257), f32(3, 2, 257))),
        Example("indices", ConcatAttributes(0), (TensorType("i32", (3,)), TensorType("i32", (2,)))),
    ),
)
