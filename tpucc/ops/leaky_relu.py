"""leaky_relu: x, or alpha times x where x is negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.families import table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements_with
from tpucc.ops.opdef import Array, Example, Types
from tpucc.ops.rules import require_number, unary


@dataclass(frozen=True, slots=True)
class LeakyReluAttributes:
    """`alpha`: the slope on the left of zero."""

    alpha: float = 0.01


def infer(attributes: LeakyReluAttributes, types: Types) -> TensorType:
    require_number(attributes.alpha, "alpha")
    return unary(attributes, types)


def function(attributes: LeakyReluAttributes, x: Array) -> Array:
    return np.where(x < 0, attributes.alpha * x, x)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = alpha * dy where x < 0, else dy: at the kink, too."""
    return [(g.operands[0] < 0.0).call("where", g.dy * g.attributes.alpha, g.dy)]
    # lab 10 end


OP = table(
    function,
    name="leaky_relu",
    summary="x, or alpha * x where x is negative, element by element",
    documentation="On the device it is a table of 256 entries in the layer before it. ONNX: LeakyRelu, with the same alpha of 0.01.",
    attributes=LeakyReluAttributes,
    infer=infer,
    monotone=lambda attributes: attributes.alpha >= 0,
    gradient=Rule(gradient),
    onnx=of_elements_with("LeakyRelu", "alpha"),
    examples=(
        Example("one whole tile", LeakyReluAttributes(), (f32(8, 256),)),
        Example("ragged, steep", LeakyReluAttributes(0.3), (f32(3, 5, 257),)),
    ),
)
