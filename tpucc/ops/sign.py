"""sign: -1, 0 or 1."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import always
from tpucc.ops.families import table
from tpucc.ops.gradient import NO_GRADIENT
from tpucc.ops.onnx_form import of_elements

OP = table(
    lambda _, x: np.sign(x),
    name="sign",
    summary="-1.0, 0.0 or 1.0, element by element",
    documentation=(
        "The sign of each value; its gradient is 0. On the device it is a table of 256 entries in the layer before it. NumPy: sign. ONNX: "
        "Sign."
    ),
    monotone=always,
    gradient=NO_GRADIENT,
    onnx=of_elements("Sign"),
)
