"""mul: the product of two values, element by element; `a * b`."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_two_values
from tpucc.ops.families import function_of_two_values
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Arithmetic, Array, Arrays, Ieee


def reference(_: NoAttributes, operands: Arrays) -> Array:
    return np.asarray(np.multiply(*operands))


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """da = dy * b and db = dy * a, each summed over the axes along which the operand was repeated."""
    a, b = g.operands
    return (
        (g.dy * b).summed_to(a.shape) if g.wanted[0] else None,
        (g.dy * a).summed_to(b.shape) if g.wanted[1] else None,
    )
    # lab 10 end


OP = function_of_two_values(
    name="mul",
    summary="a * b, element by element",
    documentation=(
        "NumPy's broadcasting: shapes are compared from the right, and a size of 1 or a missing one repeats. A constant `[N]` scales "
        "each column by its own factor. A number is a scalar `f32[]`. Both can be multiplied into the weights of a product before "
        "them. ONNX: Mul."
    ),
    reference=reference,
    legalisation=Arithmetic(lambda _: "multiply"),
    facts=of_two_values(commutative=always, signs=(), fuses_into="arithmetic"),
    gradient=Rule(gradient),
    floats=Ieee(lambda _: np.multiply),
    onnx=of_elements("Mul"),
)
