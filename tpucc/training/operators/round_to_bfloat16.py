"""round_to_bfloat16: the nearest bfloat16 values. Internal: training with values of 16 bits in memory makes it."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.ir import TensorType, f32
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.opdef import Example, Ieee, OnHost, Operand, Types
from tpucc.ops.rules import require_f32
from tpucc.training.operators import gradient_operator


@dataclass(frozen=True, slots=True)
class RoundToBfloat16Attributes:
    """There are none."""


def infer(_: RoundToBfloat16Attributes, types: Types) -> TensorType:
    require_f32(types)
    return types[0].plain()


OP = gradient_operator(
    name="round_to_bfloat16",
    summary="the nearest bfloat16 values, as float32",
    documentation=(
        "Values that memory holds in 16 bits: to the nearest, ties to the even one; what is too large becomes infinite, and subnormal "
        "numbers become zeros. TensorFlow: cast to bfloat16 and back."
    ),
    operands=(Operand("x"),),
    attributes=RoundToBfloat16Attributes,
    infer=infer,
    reference=lambda _, operands: round_to_bfloat16(operands[0]),
    legalisation=OnHost("the device has no floats"),
    facts=whole(batch=each),
    floats=Ieee(lambda _: round_to_bfloat16),
    examples=(
        Example("one whole tile", RoundToBfloat16Attributes(), (f32(8, 256),)),
        Example("ragged", RoundToBfloat16Attributes(), (f32(3, 5, 257),)),
    ),
)
