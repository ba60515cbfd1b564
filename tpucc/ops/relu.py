"""relu: max(x, 0)."""

from __future__ import annotations

import numpy as np

from tpucc.ops.families import clamp
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Clamp


def gradient(g: Backward) -> Gradients:
    """dx = dy where y > 0, else 0: at the kink, too."""
    return [(g.result > 0.0).call("where", g.dy, 0.0)]


OP = clamp(
    name="relu",
    summary="max(x, 0), element by element",
    documentation=(
        "The rectifier. On the device it is a clamp of the quantised value, in the layer before it, and costs nothing. ONNX: Relu."
    ),
    reference=lambda _, operands: np.maximum(operands[0], np.float32(0)),
    legalisation=Clamp(lambda _: (0.0, float("inf"))),
    gradient=Rule(gradient),
    onnx=of_elements("Relu"),
)
