"""tanh: the hyperbolic tangent."""

from __future__ import annotations

from tpucc.floating import double
from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Defined, Table
from tpucc.ops.rules import applied


def function(_: NoAttributes, x: Array) -> Array:
    return double.tanh(x).astype(x.dtype)


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    return arithmetic.tanh(operands[0])


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy * (1 - y^2)."""
    return [g.dy * (1.0 - g.result * g.result)]
    # lab 10 end


OP = function_of_one_value(
    name="tanh",
    summary="the hyperbolic tangent, element by element",
    documentation="On the device it is a table of 256 entries in the layer before it. ONNX: Tanh.",
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=of_elements("Tanh"),
)
