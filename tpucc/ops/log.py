"""log: the natural logarithm."""

from __future__ import annotations

import numpy as np

from tpucc.floating import double
from tpucc.ops.facts import never
from tpucc.ops.families import formula_table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Table
from tpucc.ops.rules import POSITIVE


def gradient(g: Backward) -> Gradients:
    """y = log(x): dx = dy / x."""
    return (g.dy / g.operands[0],)


OP = formula_table(
    lambda _, x, arithmetic: arithmetic.log(x),
    name="log",
    summary="the natural logarithm, element by element",
    documentation=(
        "It is minus infinity at 0 and NaN below: `log(maximum(x, 1e-7))` is safe. On the device it is a table of 256 entries in the layer "
        "before it; the entries of 0 and of negative values are the smallest number. NumPy: log. ONNX: Log."
    ),
    legalisation=Table(lambda _, x: double.log(np.maximum(x, 0))),
    singular=(0,),
    monotone=never,
    gradient=Rule(gradient),
    onnx=of_elements("Log"),
    examples=POSITIVE,
)
