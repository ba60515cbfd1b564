"""hard_sigmoid: a sigmoid of three straight lines."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.facts import always
from tpucc.ops.families import table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array


def function(_: NoAttributes, x: Array) -> Array:
    return np.clip(x + 3.0, 0, 6) / 6.0


def gradient(g: Backward) -> Gradients:
    """dx = dy / 6 where -3 < x < 3, else 0: at both kinks, too."""
    inside = (g.result > 0.0) * (g.result < 1.0)
    return [inside.call("where", g.dy / 6.0, 0.0)]


OP = table(
    function,
    name="hard_sigmoid",
    summary="relu6(x + 3) / 6, element by element",
    documentation=(
        "On the device it is a table of 256 entries in the layer before it. Keras 3: hard_sigmoid. "
        "ONNX: HardSigmoid with alpha 1/6 (its own is 0.2)."
    ),
    monotone=always,
    gradient=Rule(gradient),
    onnx=of_elements("HardSigmoid", alpha=1 / 6, beta=0.5),
)
