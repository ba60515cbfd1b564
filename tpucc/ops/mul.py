"""mul: the product of two values, element by element; `a * b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import always
from tpucc.ops.families import vector_function
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """da = dy * b and db = dy * a, each summed over the axes along which the operand was repeated."""
    a, b = g.operands
    return (
        (g.dy * b).summed_to(a.shape) if g.wanted[0] else None,
        (g.dy * a).summed_to(b.shape) if g.wanted[1] else None,
    )
    # lab 10 end


OP = vector_function(
    np.multiply,
    name="mul",
    summary="a * b, element by element",
    documentation=(
        "NumPy's broadcasting: shapes are compared from the right, and a size of 1 or a missing one repeats. A constant `[N]` scales "
        "each column by its own factor. A number is a scalar `f32[]`. Both can be multiplied into the weights of a product before "
        "them. ONNX: Mul."
    ),
    commutative=always,
    signs=(),
    gradient=Rule(gradient),
    onnx=of_elements("Mul"),
)
