"""silu: x times its sigmoid."""

from __future__ import annotations

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes
from tpucc.ops import sigmoid
from tpucc.ops.facts import never, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Arrays, Defined, Table
from tpucc.ops.rules import applied


def function(_: NoAttributes, x: Array) -> Array:
    return x * sigmoid.function(NoAttributes(), x)


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    return operands[0] * arithmetic.sigmoid(operands[0])


def gradient(g: Backward) -> Gradients:
    """dx = dy * (s + y * (1 - s)) with s = sigmoid(x)."""
    s = g.operands[0].call("sigmoid")
    return [g.dy * (s + g.result * (1.0 - s))]


OP = function_of_one_value(
    name="silu",
    summary="x * sigmoid(x), element by element",
    documentation=(
        "Also called swish. On the device it is a table of 256 entries in the layer before it. Keras: silu. ONNX: x * Sigmoid(x)."
    ),
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=never, keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(lambda g: g.node("Mul", g.operands[0], g.node("Sigmoid", g.operands[0])), Layout.ANY),
)
