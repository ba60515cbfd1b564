"""state: a value that one step of training gives to the next. Internal: training makes it of a weight, and for an optimizer.

Like a weight it has no operands and a declared type. The step graph has an output for each state: its value after the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import TensorType, f32
from tpucc.ops.families import leaf
from tpucc.ops.opdef import Example, Given, Types
from tpucc.ops.rules import declared, require_f32, same
from tpucc.training.operators import TRAINED


@dataclass(frozen=True, slots=True)
class StateAttributes:
    """`key`: the array's name in the state file; for a weight, its name in the weight file.

    `initial` is the value of all elements before the first step; None for a weight, which begins as the weight does.
    """

    key: str
    initial: float | None = None


def infer(attributes: StateAttributes, types: Types) -> TensorType:
    require_f32(types)
    return declared(attributes, types)


OP = leaf(
    name="state",
    summary="a value that a step of training reads and its end gives anew",
    documentation="Made by training: of every weight that it changes, and for what an optimizer keeps beside it (moments, powers).",
    attributes=StateAttributes,
    infer=infer,
    reference=same,
    legalisation=Given(),
    onnx=TRAINED,
    examples=(
        Example("one whole tile", StateAttributes("fc1.w"), (f32(256, 256),)),
        Example("ragged", StateAttributes("adam.first/fc2.b", 0.0), (f32(257),)),
    ),
)
