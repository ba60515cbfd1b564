"""sub: the difference of two values, element by element; `a - b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import never
from tpucc.ops.families import vector_function
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements


def gradient(g: Backward) -> Gradients:
    """da = dy and db = -dy, each summed over the axes along which the operand was repeated."""
    a, b = g.operands
    return (
        g.dy.summed_to(a.shape) if g.wanted[0] else None,
        -g.dy.summed_to(b.shape) if g.wanted[1] else None,
    )


OP = vector_function(
    np.subtract,
    name="sub",
    summary="a - b, element by element",
    documentation=(
        "NumPy's broadcasting: shapes are compared from the right, and a size of 1 or a missing one repeats. A constant `[N]` has one "
        "value for each column. A number is a scalar `f32[]`. Either side may be the constant. ONNX: Sub."
    ),
    commutative=never,
    signs=(1, -1),
    gradient=Rule(gradient),
    onnx=of_elements("Sub"),
)
