"""hard_swish: x times its hard sigmoid."""

from __future__ import annotations

from tpucc.ir.graph import NoAttributes
from tpucc.ops import hard_sigmoid
from tpucc.ops.facts import never, of_one_value
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Missing
from tpucc.ops.opdef import Array, OpDef, Operand, Table
from tpucc.ops.rules import UNARY, applied, unary


def function(_: NoAttributes, x: Array) -> Array:
    return x * hard_sigmoid.function(NoAttributes(), x)


OP = OpDef(
    name="hard_swish",
    summary="x * relu6(x + 3) / 6, element by element",
    documentation=(
        "On the device it is a table of 256 entries in the layer before it. Howard et al., Searching for MobileNetV3, ICCV 2019. "
        "ONNX: HardSwish."
    ),
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=never, keeps_parameters=False),
    gradient=Missing("to be written"),
    floats=Ieee(),
    examples=UNARY,
)
