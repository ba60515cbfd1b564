"""silu: x times its sigmoid."""

from __future__ import annotations

from tpucc.ops.facts import never
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout


def gradient(g: Backward) -> Gradients:
    """dx = dy * (s + y * (1 - s)) with s = sigmoid(x)."""
    s = g.operands[0].call("sigmoid")
    return [g.dy * (s + g.result * (1.0 - s))]


OP = formula_table(
    lambda _, x, arithmetic: x * arithmetic.sigmoid(x),
    name="silu",
    summary="x * sigmoid(x), element by element",
    documentation=(
        "Also called swish. On the device it is a table of 256 entries in the layer before it. Keras: silu. ONNX: x * Sigmoid(x)."
    ),
    monotone=never,
    gradient=Rule(gradient),
    onnx=Form(lambda g: g.node("Mul", g.operands[0], g.node("Sigmoid", g.operands[0])), Layout.ANY),
)
