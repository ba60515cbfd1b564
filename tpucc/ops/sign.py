"""sign: -1, 0 or 1."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import NO_GRADIENT
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Ieee, Table


def reference(_: NoAttributes, operands: Arrays) -> Array:
    return np.asarray(np.sign(operands[0]))


OP = function_of_one_value(
    name="sign",
    summary="-1.0, 0.0 or 1.0, element by element",
    documentation=(
        "The sign of each value; its gradient is 0. On the device it is a table of 256 entries in the layer before it. NumPy: sign. ONNX: "
        "Sign."
    ),
    reference=reference,
    legalisation=Table(lambda _, x: np.sign(x)),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=NO_GRADIENT,
    floats=Ieee(),
    onnx=of_elements("Sign"),
)
