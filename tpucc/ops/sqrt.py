"""sqrt: the square root."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import never
from tpucc.ops.families import table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Ieee, Table
from tpucc.ops.rules import POSITIVE


def gradient(g: Backward) -> Gradients:
    """y = sqrt(x): dx = dy / (2 * y). It is infinite at 0, as the slope there is: `sqrt(x + 1e-7)` has a finite one."""
    return (g.dy / (2.0 * g.result),)


OP = table(
    lambda _, x: np.sqrt(x),
    name="sqrt",
    summary="the square root, element by element",
    documentation=(
        "It is NaN below 0. Its gradient is infinite at 0: add a small number first. On the device it is a table of 256 entries in the "
        "layer before it; the entries of negative values are 0. NumPy: sqrt. ONNX: Sqrt."
    ),
    legalisation=Table(lambda _, x: np.sqrt(np.maximum(x, 0))),
    singular=(0,),
    monotone=never,
    gradient=Rule(gradient),
    floats=Ieee(lambda _: np.sqrt),
    onnx=of_elements("Sqrt"),
    examples=POSITIVE,
)
