"""elu: x, or alpha times exp(x) - 1 where x is negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements_with
from tpucc.ops.opdef import Array, Example, Types
from tpucc.ops.rules import require_number, unary


@dataclass(frozen=True, slots=True)
class EluAttributes:
    """`alpha`: far on the left of zero, values go to -alpha."""

    alpha: float = 1.0


def infer(attributes: EluAttributes, types: Types) -> TensorType:
    require_number(attributes.alpha, "alpha")
    return unary(attributes, types)


def formula(attributes: EluAttributes, x: Array, arithmetic: Arithmetic) -> Array:
    """The exponent is never positive, so that nothing overflows where the other branch is taken."""
    return np.where(x < 0, attributes.alpha * arithmetic.expm1(np.minimum(x, 0)), x)


def gradient(g: Backward) -> Gradients:
    """dx = dy * alpha * exp(x) where x < 0, which is dy * (y + alpha), else dy: at the kink, too."""
    return [(g.operands[0] < 0.0).call("where", g.dy * (g.result + g.attributes.alpha), g.dy)]


OP = formula_table(
    formula,
    name="elu",
    summary="x, or alpha * (exp(x) - 1) where x is negative, element by element",
    documentation="The exponential linear unit. On the device it is a table of 256 entries in the layer before it. ONNX: Elu.",
    attributes=EluAttributes,
    infer=infer,
    monotone=lambda attributes: attributes.alpha >= 0,
    gradient=Rule(gradient),
    onnx=of_elements_with("Elu", "alpha"),
    examples=(
        Example("one whole tile", EluAttributes(), (f32(8, 256),)),
        Example("ragged, shallow", EluAttributes(0.5), (f32(3, 5, 257),)),
    ),
)
