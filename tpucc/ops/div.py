"""div: the quotient of two values, element by element; `a / b`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import whole
from tpucc.ops.families import function_of_two_values
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Ieee, OnHost
from tpucc.ops.rules import BROADCAST, ONE_TO_TWO


def reference(_: NoAttributes, operands: Arrays) -> Array:
    """IEEE 754's quotient: infinite, or NaN, where the divisor is 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.asarray(np.divide(*operands))


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """y = a / b: da = dy / b, db = -dy * y / b, each summed over the axes along which the operand was repeated."""
    a, b = g.operands
    da = g.dy / b
    return da.summed_to(a.shape), -(da * g.result).summed_to(b.shape)
    # lab 10 end


OP = function_of_two_values(
    name="div",
    summary="a / b, element by element",
    documentation=(
        "NumPy's broadcasting. Division by a number that is known while compiling is a multiplication by its reciprocal, which the device "
        "has. ONNX: Div. NumPy: divide."
    ),
    reference=reference,
    legalisation=OnHost("the device has no division"),
    facts=whole(batch=element_by_element, singular=(1,)),
    gradient=Rule(gradient),
    floats=Ieee(lambda _: np.divide),
    onnx=of_elements("Div"),
    examples=tuple(replace(example, operands=(example.operands[0], example.operands[1].with_range(ONE_TO_TWO))) for example in BROADCAST),
)
