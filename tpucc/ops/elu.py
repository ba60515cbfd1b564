"""elu: x, or alpha times exp(x) - 1 where x is negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.floating import double
from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.facts import of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements_with
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OpDef, Operand, Table, Types
from tpucc.ops.rules import applied, require_number, unary


@dataclass(frozen=True, slots=True)
class EluAttributes:
    """`alpha`: far on the left of zero, values go to -alpha."""

    alpha: float = 1.0


def infer(attributes: EluAttributes, types: Types) -> TensorType:
    require_number(attributes.alpha, "alpha")
    return unary(attributes, types)


def function(attributes: EluAttributes, x: Array) -> Array:
    """The exponent is never positive, so that nothing overflows where the other branch is taken."""
    return np.where(x < 0, attributes.alpha * double.expm1(np.minimum(x, 0)).astype(x.dtype), x)


def defined(attributes: EluAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses no digits near 0."""
    x = operands[0]
    left: Array = np.minimum(x, 0)
    half: Array = left * 0.5
    return np.where(x < 0, attributes.alpha * (arithmetic.tanh(half) * (arithmetic.exp(left) + 1.0)), x)


def gradient(g: Backward) -> Gradients:
    """dx = dy * alpha * exp(x) where x < 0, which is dy * (y + alpha), else dy: at the kink, too."""
    return [(g.operands[0] < 0.0).call("where", g.dy * (g.result + g.attributes.alpha), g.dy)]


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
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=of_elements_with("Elu", "alpha"),
    examples=(
        Example("one whole tile", EluAttributes(), (f32(8, 256),)),
        Example("ragged, shallow", EluAttributes(0.5), (f32(3, 5, 257),)),
    ),
)
