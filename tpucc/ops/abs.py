"""abs: the absolute value."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import never
from tpucc.ops.families import table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements


def gradient(g: Backward) -> Gradients:
    """dx = dy * sign(x): 0 at the kink."""
    return (g.dy * g.operands[0].call("sign"),)


OP = table(
    lambda _, x: np.abs(x),
    name="abs",
    summary="the distance from zero, element by element",
    documentation="Its gradient at 0 is 0. On the device it is a table of 256 entries in the layer before it. NumPy: abs. ONNX: Abs.",
    monotone=never,
    gradient=Rule(gradient),
    onnx=of_elements("Abs"),
)
