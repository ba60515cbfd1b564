"""relu: max(x, 0)."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Clamp, Ieee


def reference(_: NoAttributes, operands: Arrays) -> Array:
    return np.maximum(operands[0], np.float32(0))


def gradient(g: Backward) -> Gradients:
    """dx = dy where y > 0, else 0: at the kink, too."""
    return [(g.result > 0.0).call("where", g.dy, 0.0)]


OP = function_of_one_value(
    name="relu",
    summary="max(x, 0), element by element",
    documentation=(
        "The rectifier. On the device it is a clamp of the quantised value, in the layer before it, and costs nothing. ONNX: Relu."
    ),
    reference=reference,
    legalisation=Clamp(lambda _: (0.0, float("inf"))),
    facts=of_one_value(monotone=always, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=of_elements("Relu"),
)
