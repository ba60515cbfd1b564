"""gelu: x times the normal distribution function of x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import TensorType, f32
from tpucc.ops.erf import erf
from tpucc.ops.facts import never, of_one_value
from tpucc.ops.opdef import Array, Example, OpDef, Operand, Table
from tpucc.ops.rules import applied, require_flag, unary

FLAT = 16.0
"""Past this magnitude the tangent of the approximation is 1 in float64."""


@dataclass(frozen=True, slots=True)
class GeluAttributes:
    """`approximate`: the formula with tanh in place of the exact one with erf."""

    approximate: bool = False


def infer(attributes: GeluAttributes, types: Sequence[TensorType]) -> TensorType:
    require_flag(attributes.approximate, "approximate")
    return unary(attributes, types)


def function(attributes: GeluAttributes, x: Array) -> Array:
    return 0.5 * x * (1.0 + (_tangent(x) if attributes.approximate else erf(x * math.sqrt(0.5))))


def _tangent(x: Array) -> Array:
    """tanh(sqrt(2 / pi) * (x + 0.044715 x^3)), from a clipped x: the cube of a large one would overflow."""
    near = np.clip(x, -FLAT, FLAT)
    return np.asarray(np.tanh(math.sqrt(2.0 / math.pi) * near * (1.0 + 0.044715 * near * near)))


OP = OpDef(
    name="gelu",
    summary="x * (1 + erf(x / sqrt(2))) / 2, element by element",
    documentation=(
        "The Gaussian error linear unit of Hendrycks and Gimpel, arXiv 1606.08415. `approximate=True` takes the paper's formula with "
        "tanh. On the device it is a table of 256 entries in the layer before it. ONNX: Gelu. Keras: gelu, whose default is the exact "
        "one too."
    ),
    operands=(Operand("x"),),
    attributes=GeluAttributes,
    infer=infer,
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=never, keeps_parameters=False),
    examples=(
        Example("one whole tile", GeluAttributes(), (f32(8, 256),)),
        Example("ragged, approximate", GeluAttributes(True), (f32(3, 5, 257),)),
    ),
)
