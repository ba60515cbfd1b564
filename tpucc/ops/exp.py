"""exp: the exponential function."""

from __future__ import annotations

import numpy as np

from tpucc.floating import double
from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Defined, Table


def reference(_: NoAttributes, operands: Arrays) -> Array:
    """Infinite where it overflows."""
    with np.errstate(over="ignore"):
        return double.exp(operands[0]).astype(operands[0].dtype)


def gradient(g: Backward) -> Gradients:
    """y = exp(x): dx = dy * y."""
    return (g.dy * g.result,)


OP = function_of_one_value(
    name="exp",
    summary="e to the power of x, element by element",
    documentation=(
        "Above about 88.7 it is infinite in float32. On the device it is a table of 256 entries in the layer before it, whose results are "
        "as far apart for small values as for large ones. NumPy: exp. ONNX: Exp."
    ),
    reference=reference,
    legalisation=Table(lambda _, x: double.exp(x)),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Rule(gradient),
    floats=Defined(lambda _, operands, arithmetic: arithmetic.exp(operands[0])),
    onnx=of_elements("Exp"),
)
