"""clip: values limited to low…high."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.families import clamp
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout, clipped
from tpucc.ops.opdef import Array, Arrays, Clamp, Example, RuleError, Types
from tpucc.ops.rules import require_f32, require_number


@dataclass(frozen=True, slots=True)
class ClipAttributes:
    """`low` and `high`: the smallest and the largest result."""

    low: float
    high: float


def infer(attributes: ClipAttributes, types: Types) -> TensorType:
    """The shape of x. Raises `RuleError` for other values than f32, and where `low` is above `high`."""
    require_f32(types)
    if require_number(attributes.low, "low") > require_number(attributes.high, "high"):
        raise RuleError("E0307", "low is above high", about=("low",), help="clip(x, low, high)")
    return types[0].plain()


def reference(attributes: ClipAttributes, operands: Arrays) -> Array:
    """By comparisons: x itself comes out where it equals a bound, so that -0 stays -0 between 0 and 1; NaN stays."""
    (x,) = operands
    return np.asarray(np.where(x < attributes.low, attributes.low, np.where(x > attributes.high, attributes.high, x)))


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy where low < x < high, else 0: 0 at the kinks too."""
    (x,) = g.operands
    inside = (x > g.attributes.low) * (x < g.attributes.high)
    return (inside.call("where", g.dy, 0.0),)
    # lab 10 end


OP = clamp(
    name="clip",
    summary="min(max(x, low), high), element by element",
    documentation=(
        "What is below `low` becomes `low`, what is above `high` becomes `high`. On the device it is a clamp of the quantised value in the "
        "layer before it, and costs nothing. NumPy: clip. ONNX: Clip. PyTorch: clamp, whose gradient at the bounds "
        "is 1, where ours is 0."
    ),
    attributes=ClipAttributes,
    infer=infer,
    reference=reference,
    legalisation=Clamp(lambda attributes: (attributes.low, attributes.high)),
    gradient=Rule(gradient),
    onnx=Form(lambda g: clipped(g, g.attributes.low, g.attributes.high), Layout.ANY),
    examples=(
        Example("one whole tile", ClipAttributes(-1.0, 1.0), (f32(8, 256),)),
        Example("ragged", ClipAttributes(0.0, 2.5), (f32(3, 5, 57),)),
    ),
)
