"""transpose: the axes in another order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Batch, Case, Division
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Rearrangement, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes
from tpucc.ops.rules import require_integers, reshaped


@dataclass(frozen=True, slots=True)
class TransposeAttributes:
    """`perm[i]` is the axis of x that becomes axis i; negative ones count from the end."""

    perm: tuple[int, ...]


def infer(attributes: TransposeAttributes, types: Types) -> TensorType:
    x = types[0]
    perm = require_integers(attributes.perm, "perm")
    if len(perm) != x.rank:
        raise RuleError("E0310", f"{{0}} has {x.rank} axes, and perm has {len(perm)}", about=("perm", 0), help=_help(x.rank))
    if sorted(axis + x.rank if axis < 0 else axis for axis in perm) != list(range(x.rank)):
        raise RuleError("E0310", "perm must name every axis once", about=("perm",), help=_help(x.rank))
    return reshaped(x, tuple(x.shape[axis] for axis in perm))


def _help(rank: int) -> str:
    return f"({', '.join(map(str, reversed(range(rank))))}) reverses the axes" if rank > 1 else "there is nothing to transpose"


def prepared(attributes: TransposeAttributes) -> Callable[[Array], Array]:
    return methodcaller("transpose", require_integers(attributes.perm, "perm"))


def reference(attributes: TransposeAttributes, operands: Arrays) -> Array:
    return prepared(attributes)(operands[0])


def _obstacle(attributes: TransposeAttributes, shapes: Shapes) -> str:
    """Rows in another order are walked so; lanes can't become rows."""
    rank = len(shapes[0])
    kept = rank == 0 or attributes.perm[-1] % rank == rank - 1
    return "" if kept else "the device moves whole rows: it can't turn them into columns"


def _part(attributes: TransposeAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part:
    axes = [axis % len(bounds) for axis in attributes.perm]
    return Part((tuple(bounds[axes.index(axis)] for axis in range(len(axes))),), attributes)


def _batch(case: Case) -> Division:
    batch, attributes = case.only(0), case.attributes
    rank = case.node.type.rank
    return Division(Batch([axis % rank for axis in attributes.perm].index(batch.axis), batch.inner))


def gradient(g: Backward) -> Gradients:
    """dx = dy with its axes put back."""
    perm = [axis % g.result.type.rank for axis in g.attributes.perm]
    return [g.dy.transposed(*map(perm.index, range(len(perm))))]


def onnx(g: Call) -> str:
    return g.node("Transpose", *g.operands, perm=[axis % g.result.rank for axis in g.attributes.perm])


OP = OpDef(
    name="transpose",
    summary="the axes in another order",
    documentation=(
        "Axis `perm[i]` of `x` becomes axis i of the result. Before or after a product with a constant it becomes a transpose of the "
        "weights. ONNX: Transpose."
    ),
    operands=(Operand("x"),),
    attributes=TransposeAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(_obstacle),
    facts=moving(Values.PICKED, part=_part, batch=_batch, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(prepared),
    onnx=Form(onnx),
    examples=(
        Example("one whole tile", TransposeAttributes((1, 0)), (f32(256, 256),)),
        Example("ragged", TransposeAttributes((0, -1, 1)), (f32(3, 5, 257),)),
    ),
)
