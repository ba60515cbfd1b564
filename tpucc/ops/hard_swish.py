"""hard_swish: x times its hard sigmoid."""

from __future__ import annotations

from tpucc.ir import NoAttributes
from tpucc.ops import hard_sigmoid
from tpucc.ops.facts import never
from tpucc.ops.families import table
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array


def function(_: NoAttributes, x: Array) -> Array:
    return x * hard_sigmoid.function(NoAttributes(), x)


def gradient(g: Backward) -> Gradients:
    """dx = dy * (s + x / 6) where the hard sigmoid s of x is between 0 and 1, else dy * s: at both kinks, too."""
    x = g.operands[0]
    s = x.call("hard_sigmoid")
    inside = (s > 0.0) * (s < 1.0)
    return [g.dy * (s + inside.call("where", x / 6.0, 0.0))]


OP = table(
    function,
    name="hard_swish",
    summary="x * relu6(x + 3) / 6, element by element",
    documentation=(
        "On the device it is a table of 256 entries in the layer before it. Howard et al., Searching for MobileNetV3, ICCV 2019. "
        "ONNX: HardSwish."
    ),
    monotone=never,
    gradient=Rule(gradient),
    onnx=of_elements("HardSwish"),
)
