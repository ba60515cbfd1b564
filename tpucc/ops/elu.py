"""elu: x, or alpha times exp(x) - 1 where x is negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import TensorType, f32
from tpucc.ops.facts import of_one_value
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Missing
from tpucc.ops.opdef import Array, Example, OpDef, Operand, Table
from tpucc.ops.rules import applied, require_number, unary


@dataclass(frozen=True, slots=True)
class EluAttributes:
    """`alpha`: far on the left of zero, values go to -alpha."""

    alpha: float = 1.0


def infer(attributes: EluAttributes, types: Sequence[TensorType]) -> TensorType:
    require_number(attributes.alpha, "alpha")
    return unary(attributes, types)


def function(attributes: EluAttributes, x: Array) -> Array:
    """The exponent is never positive, so that nothing overflows where the other branch is taken."""
    return np.where(x < 0, attributes.alpha * np.expm1(np.minimum(x, 0)), x)


OP = OpDef(
    name="elu",
    summary="x, or alpha * (exp(x) - 1) where x is negative, element by element",
    documentation="The exponential linear unit. On the device it is a table of 256 entries in the layer before it. ONNX: Elu.",
    operands=(Operand("x"),),
    attributes=EluAttributes,
    infer=infer,
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=lambda attributes: attributes.alpha >= 0, keeps_parameters=False),
    gradient=Missing("to be written"),
    floats=Ieee(),
    examples=(
        Example("one whole tile", EluAttributes(), (f32(8, 256),)),
        Example("ragged, shallow", EluAttributes(0.5), (f32(3, 5, 257),)),
    ),
)
