"""shuffle_lanes: the values of each row in another order. Internal: the pass of the same name makes it of two reshapes and a transpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Division, beside
from tpucc.ops.facts import Values, moving
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, Rearrangement, RuleError, Types
from tpucc.ops.parts import Bounds, Part, Shape, Shapes
from tpucc.ops.rules import require_f32, require_integers, reshaped


@dataclass(frozen=True, slots=True)
class ShuffleLanesAttributes:
    """The last axis counts indices of `sizes`, the last one fastest; in the result those of axis `perm[i]` of them come at place i."""

    sizes: tuple[int, ...] = (1,)
    perm: tuple[int, ...] = (0,)


def lanes(attributes: ShuffleLanesAttributes) -> Sequence[int]:
    """For each lane of the result the lane of the operand."""
    order: list[int] = np.arange(prod(attributes.sizes)).reshape(attributes.sizes).transpose(attributes.perm).reshape(-1).tolist()
    return order


def infer(attributes: ShuffleLanesAttributes, types: Types) -> TensorType:
    x = types[0]
    require_f32(types)
    sizes, perm = require_integers(attributes.sizes, "sizes"), require_integers(attributes.perm, "perm")
    if sorted(perm) != list(range(len(sizes))):
        raise RuleError("E0310", "perm must name every size once", about=("perm",))
    if min(sizes, default=0) < 1 or not x.rank or prod(sizes) != x.shape[-1]:
        raise RuleError("E0310", f"{{0}} is {x.brief}, which has not as many lanes as sizes say", about=("sizes", 0))
    return reshaped(x, x.shape)


def reference(attributes: ShuffleLanesAttributes, operands: Arrays) -> Array:
    return np.asarray(operands[0][..., lanes(attributes)])


def _part(attributes: ShuffleLanesAttributes, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
    """Whole rows."""
    return Part((bounds,), attributes) if bounds[-1] == (0, result[-1]) else None


OP = OpDef(
    name="shuffle_lanes",
    summary="the values of each row in another order",
    documentation=(
        "The matrix unit does it by a product with a matrix of zeros and ones. ShuffleNet shuffles its channels so. ONNX: Gather."
    ),
    operands=(Operand("x"),),
    attributes=ShuffleLanesAttributes,
    infer=infer,
    reference=reference,
    legalisation=Rearrangement(lambda attributes, shapes: ""),
    facts=moving(Values.PICKED, part=_part, batch=lambda case: Division(beside(case, -1)), keeps_parameters=True),
    gradient=Missing("made after differentiation"),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Gather", *g.operands, g.integers(lanes(g.attributes), "order"), axis=g.axis(-1)), Layout.ANY),
    examples=(
        Example("one whole tile", ShuffleLanesAttributes((16, 16), (1, 0)), (f32(8, 256),)),
        Example("ragged", ShuffleLanesAttributes((3, 4, 2), (2, 0, 1)), (f32(2, 5, 24),)),
    ),
)
