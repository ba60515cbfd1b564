"""log: the natural logarithm."""

from __future__ import annotations

import numpy as np

from tpucc.floating import double
from tpucc.ir import NoAttributes
from tpucc.ops.facts import never, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Defined, Table
from tpucc.ops.rules import POSITIVE


def reference(_: NoAttributes, operands: Arrays) -> Array:
    """Minus infinity at 0, NaN below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return double.log(operands[0]).astype(operands[0].dtype)


def gradient(g: Backward) -> Gradients:
    """y = log(x): dx = dy / x."""
    return (g.dy / g.operands[0],)


OP = function_of_one_value(
    name="log",
    summary="the natural logarithm, element by element",
    documentation=(
        "It is minus infinity at 0 and NaN below: `log(maximum(x, 1e-7))` is safe. On the device it is a table of 256 entries in the layer "
        "before it; the entries of 0 and of negative values are the smallest number. NumPy: log. ONNX: Log."
    ),
    reference=reference,
    legalisation=Table(lambda _, x: double.log(np.maximum(x, 0))),
    facts=of_one_value(monotone=never, keeps_parameters=False, singular=(0,)),
    gradient=Rule(gradient),
    floats=Defined(lambda _, operands, arithmetic: arithmetic.log(operands[0])),
    onnx=of_elements("Log"),
    examples=POSITIVE,
)
