"""sigmoid: 1 / (1 + exp(-x))."""

from __future__ import annotations

from tpucc.ops.facts import always
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy * y * (1 - y)."""
    return [g.dy * g.result * (1.0 - g.result)]
    # lab 10 end


OP = formula_table(
    lambda _, x, arithmetic: arithmetic.sigmoid(x),
    name="sigmoid",
    summary="1 / (1 + exp(-x)), element by element",
    documentation="The logistic function. On the device it is a table of 256 entries in the layer before it. ONNX: Sigmoid.",
    monotone=always,
    gradient=Rule(gradient),
    onnx=of_elements("Sigmoid"),
)
