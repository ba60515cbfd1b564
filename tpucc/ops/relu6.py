"""relu6: max(x, 0), and at most 6."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.families import function_of_one_value
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout, clipped
from tpucc.ops.opdef import Array, Clamp, Ieee
from tpucc.ops.rules import applied


def function(_: NoAttributes, x: Array) -> Array:
    return np.clip(x, 0, 6)


def gradient(g: Backward) -> Gradients:
    """dx = dy where 0 < y < 6, else 0: at both kinks, too."""
    inside = (g.result > 0.0) * (g.result < 6.0)
    return [inside.call("where", g.dy, 0.0)]


OP = function_of_one_value(
    name="relu6",
    summary="min(max(x, 0), 6), element by element",
    documentation=(
        "The rectifier with an upper bound. On the device it is a clamp of the quantised value, in the layer before it, and costs "
        "nothing. TensorFlow: relu6."
    ),
    reference=applied(function),
    legalisation=Clamp(lambda _: (0.0, 6.0)),
    facts=of_one_value(monotone=always, keeps_parameters=True),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: clipped(g, 0.0, 6.0), Layout.ANY),
)
