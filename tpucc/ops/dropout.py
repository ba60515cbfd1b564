"""dropout: in training, some values become zero by chance."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_f32, require_number, same, shown


@dataclass(frozen=True, slots=True)
class DropoutAttributes:
    """`rate`: how likely a value becomes zero, from 0 to less than 1."""

    rate: float


def infer(attributes: DropoutAttributes, types: Types) -> TensorType:
    require_f32(types)
    if not 0 <= require_number(attributes.rate, "rate") < 1:
        mend = "0.5 makes half of the values zero"
        raise RuleError("E0307", f"rate must be at least 0 and less than 1{shown(attributes.rate)}", about=("rate",), help=mend)
    return types[0].plain()


OP = OpDef(
    name="dropout",
    summary="in training, each value is zero with probability rate, or else divided by 1 - rate",
    documentation=(
        "Srivastava et al., Journal of Machine Learning Research 15 (2014). Outside of training it changes nothing: the division keeps the "
        "mean as it was. Training puts a random mask in its place before it differentiates. Keras: Dropout. ONNX: Dropout."
    ),
    operands=(Operand("x"),),
    attributes=DropoutAttributes,
    infer=infer,
    reference=same,
    legalisation=OnHost("it is part of training"),
    facts=whole(batch=each),
    gradient=Missing("training draws its mask before it differentiates"),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Dropout", *g.operands, g.number(g.attributes.rate, "ratio")), Layout.ANY),
    examples=(
        Example("one whole tile", DropoutAttributes(0.5), (f32(8, 256),)),
        Example("ragged", DropoutAttributes(0.0), (f32(3, 5, 57),)),
    ),
)
