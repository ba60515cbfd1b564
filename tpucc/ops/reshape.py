"""reshape: the same values in another shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller

from tpucc.ir import Attributes, TensorType, f32
from tpucc.ops.batch import Batch, Case, Division, MixedError
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, RuleError, Types, View
from tpucc.ops.parts import Bounds, Part, Shape, Shapes, all_of, shape_of
from tpucc.ops.rules import require_integers, require_shape, reshaped


@dataclass(frozen=True, slots=True)
class ReshapeAttributes:
    """`shape`: the sizes; one of them may be -1, and is worked out."""

    shape: tuple[int, ...]


def infer(attributes: ReshapeAttributes, types: Types) -> TensorType:
    x = types[0]
    wanted = require_integers(attributes.shape, "shape")
    if wanted.count(-1) > 1:
        raise RuleError("E0309", "only one size may be -1", about=("shape",))
    known = require_shape([size for size in wanted if size != -1])
    product = math.prod(known)
    if product != x.size if -1 not in wanted else x.size % product:
        held = str(wanted) if len(wanted) <= 8 else "the shape"
        mend = "one size may be -1, and is worked out"
        if x.rank > 1:
            mend = f"({x.shape[0]}, -1) keeps the first axis and works out the second"
        raise RuleError("E0309", f"{{0}} has {x.size:,} elements, which {held} can't hold", about=(0, "shape"), help=mend)
    return reshaped(x, require_shape(tuple(x.size // product if size == -1 else size for size in wanted)))


def prepared(attributes: ReshapeAttributes) -> Callable[[Array], Array]:
    return methodcaller("reshape", require_integers(attributes.shape, "shape"))


def reference(attributes: ReshapeAttributes, operands: Arrays) -> Array:
    return prepared(attributes)(operands[0])


def view(operand: Bounds, result: Bounds) -> Part:
    """A part of the operand in the shape of a part of the result."""
    return Part((operand,), ReshapeAttributes(shape_of(result)), "reshape")


def viewed(attributes: Attributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """A part of the columns when the columns stay, any part when only axes of size 1 come or go."""
    (before,) = shapes
    if [size for size in before if size != 1] == [size for size in result if size != 1]:
        ends = iter([pair for pair, size in zip(bounds, result, strict=True) if size != 1])
        return view(tuple((0, 1) if size == 1 else next(ends) for size in before), bounds)
    if before[-1:] == result[-1:] and bounds[:-1] == all_of(result)[:-1]:
        return view((*all_of(before)[:-1], bounds[-1]), bounds)
    return None


def view_batch(case: Case) -> Division:
    """Counted in elements, the items stay where they are; one axis of the result must hold them all."""
    batch, x, y = case.only(0), case.operands[0].type, case.node.type.shape
    stride = batch.inner * math.prod(x.shape[batch.axis + 1 :])
    behind = 1
    for axis in reversed(range(len(y))):
        if stride % behind == 0 and y[axis] * behind % (stride * case.size) == 0:
            return _viewed_batch(case, Batch(axis, stride // behind))
        behind *= y[axis]
    raise MixedError(f"{case.node.op} spreads the batch over several axes of {case.node.type.brief}")


def _viewed_batch(case: Case, result: Batch) -> Division:
    """A reshape names the sizes of one core's part; other views have none to name."""
    named = isinstance(case.node.attributes, ReshapeAttributes)
    return Division(result, attributes=ReshapeAttributes(case.part(case.node.type.shape, result)) if named else None)


def gradient(g: Backward) -> Gradients:
    """dx = dy in the shape of x."""
    return [g.dy.reshape(*g.operands[0].shape)]


OP = OpDef(
    name="reshape",
    summary="the same values in another shape",
    documentation=(
        "The values stay in NumPy's order, the last axis fastest. One size may be -1. On the device it moves no data as long as the "
        "last size stays. ONNX: Reshape, where 0 copies a size; here it is an error. NumPy: reshape."
    ),
    operands=(Operand("x"),),
    attributes=ReshapeAttributes,
    infer=infer,
    reference=reference,
    legalisation=View(),
    facts=moving(Values.VIEWED, part=viewed, batch=view_batch, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(prepared),
    onnx=Form(lambda g: g.reshaped(g.operands[0], *g.result.shape)),
    examples=(
        Example("one whole tile", ReshapeAttributes((4, 2, 256)), (f32(8, 256),)),
        Example("ragged", ReshapeAttributes((-1, 257)), (f32(3, 5, 257),)),
        Example("to a scalar", ReshapeAttributes(()), (f32(1, 1),)),
    ),
)
