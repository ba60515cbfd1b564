"""sigmoid: 1 / (1 + exp(-x))."""

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
    return double.sigmoid(x).astype(x.dtype)


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    return arithmetic.sigmoid(operands[0])


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy * y * (1 - y)."""
    return [g.dy * g.result * (1.0 - g.result)]
    # lab 10 end


OP = function_of_one_value(
    name="sigmoid",
    summary="1 / (1 + exp(-x)), element by element",
    documentation="The logistic function. On the device it is a table of 256 entries in the layer before it. ONNX: Sigmoid.",
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=of_elements("Sigmoid"),
)
