"""exp: the exponential function."""

from __future__ import annotations

from tpucc.ops.facts import always
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements


def gradient(g: Backward) -> Gradients:
    """y = exp(x): dx = dy * y."""
    return (g.dy * g.result,)


OP = formula_table(
    lambda _, x, arithmetic: arithmetic.exp(x),
    name="exp",
    summary="e to the power of x, element by element",
    documentation=(
        "Above about 88.7 it is infinite in float32. On the device it is a table of 256 entries in the layer before it, whose results are "
        "as far apart for small values as for large ones. NumPy: exp. ONNX: Exp."
    ),
    monotone=always,
    gradient=Rule(gradient),
    onnx=of_elements("Exp"),
)
