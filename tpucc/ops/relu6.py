"""relu6: max(x, 0), and at most 6."""

from __future__ import annotations

import numpy as np

from tpucc.ops.families import clamp
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout, clipped
from tpucc.ops.opdef import Clamp


def gradient(g: Backward) -> Gradients:
    """dx = dy where 0 < y < 6, else 0: at both kinks, too."""
    inside = (g.result > 0.0) * (g.result < 6.0)
    return [inside.call("where", g.dy, 0.0)]


OP = clamp(
    name="relu6",
    summary="min(max(x, 0), 6), element by element",
    documentation=(
        "The rectifier with an upper bound. On the device it is a clamp of the quantised value, in the layer before it, and costs "
        "nothing. TensorFlow: relu6."
    ),
    reference=lambda _, operands: np.clip(operands[0], 0, 6),
    legalisation=Clamp(lambda _: (0.0, 6.0)),
    gradient=Rule(gradient),
    onnx=Form(lambda g: clipped(g, 0.0, 6.0), Layout.ANY),
)
