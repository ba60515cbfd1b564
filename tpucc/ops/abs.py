"""abs: the absolute value."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import never, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Ieee, Table


def reference(_: NoAttributes, operands: Arrays) -> Array:
    return np.asarray(np.abs(operands[0]))


def gradient(g: Backward) -> Gradients:
    """dx = dy * sign(x): 0 at the kink."""
    return (g.dy * g.operands[0].call("sign"),)


OP = function_of_one_value(
    name="abs",
    summary="the distance from zero, element by element",
    documentation="Its gradient at 0 is 0. On the device it is a table of 256 entries in the layer before it. NumPy: abs. ONNX: Abs.",
    reference=reference,
    legalisation=Table(lambda _, x: np.abs(x)),
    facts=of_one_value(monotone=never, keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Ieee(lambda _: np.abs),
    onnx=of_elements("Abs"),
)
