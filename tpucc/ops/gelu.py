"""gelu: x times the normal distribution function of x."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.facts import never
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule, Value
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Example, Types
from tpucc.ops.rules import require_flag, unary

FLAT = 16.0
"""Past this magnitude the tangent of the approximation is 1 in float64."""


@dataclass(frozen=True, slots=True)
class GeluAttributes:
    """`approximate`: the formula with tanh in place of the exact one with erf."""

    approximate: bool = False


def infer(attributes: GeluAttributes, types: Types) -> TensorType:
    require_flag(attributes.approximate, "approximate")
    return unary(attributes, types)


def _inner(x: Array) -> Array:
    """sqrt(2 / pi) * (x + 0.044715 x^3), from a clipped x: the cube of a large one would overflow."""
    near: Array = np.clip(x, -FLAT, FLAT)
    return math.sqrt(2.0 / math.pi) * near * (1.0 + 0.044715 * near * near)


def formula(attributes: GeluAttributes, x: Array, arithmetic: Arithmetic) -> Array:
    inner: Array = _inner(x) if attributes.approximate else x * math.sqrt(0.5)
    return 0.5 * x * (1.0 + (arithmetic.tanh if attributes.approximate else arithmetic.erf)(inner))


def gradient(g: Backward) -> Gradients:
    """dx = dy times the slope, of the exact function or of the approximation."""
    return [g.dy * (_approximate_slope(g.operands[0]) if g.attributes.approximate else _exact_slope(g.operands[0], g.result))]


def _exact_slope(x: Value, y: Value) -> Value:
    """P + x * p, with the normal distribution's function P = (1 + erf(x / sqrt(2))) / 2, which is y / x, and its density p."""
    square = x * x
    distribution = (square > 0.0).call("where", y / x, 0.5)
    density = (square * -0.5).call("exp") * (1.0 / math.sqrt(2.0 * math.pi))
    return distribution + x * density


def _approximate_slope(x: Value) -> Value:
    """(1 + t) / 2 + x / 2 * (1 - t^2) * u', with t = tanh(u) and u = sqrt(2 / pi) * (x + 0.044715 x^3)."""
    near = x.call("clip", low=-FLAT, high=FLAT)
    square = near * near
    t = (near * (1.0 + 0.044715 * square) * math.sqrt(2.0 / math.pi)).call("tanh")
    change = (1.0 + 3 * 0.044715 * square) * math.sqrt(2.0 / math.pi)
    return 0.5 * (1.0 + t) + 0.5 * near * (1.0 - t * t) * change


OP = formula_table(
    formula,
    name="gelu",
    summary="x * (1 + erf(x / sqrt(2))) / 2, element by element",
    documentation=(
        "The Gaussian error linear unit of Hendrycks and Gimpel, arXiv 1606.08415. `approximate=True` takes the paper's formula with "
        "tanh. On the device it is a table of 256 entries in the layer before it. ONNX: Gelu. Keras: gelu, whose default is the exact "
        "one too."
    ),
    attributes=GeluAttributes,
    infer=infer,
    monotone=never,
    gradient=Rule(gradient),
    onnx=Form(lambda g: g.node("Gelu", *g.operands, approximate="tanh" if g.attributes.approximate else "none"), Layout.ANY),
    examples=(
        Example("one whole tile", GeluAttributes(), (f32(8, 256),)),
        Example("ragged, approximate", GeluAttributes(True), (f32(3, 5, 257),)),
    ),
)
