"""weight: a trained constant that is still a name. Internal: the statement `weight w: f32[4, 3] = "fc.w"` makes it.

A weight has no operands and a declared type, which is what `infer` checks and `reference` passes on: each gets it as the only element of
its sequence. Binding the weights turns each into a `constant`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import TensorType, f32
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import Declared
from tpucc.ops.opdef import Example, Given, Types
from tpucc.ops.rules import declared, require_f32, same


@dataclass(frozen=True, slots=True)
class WeightAttributes:
    """`key`: the array's name in the weight file."""

    key: str


def infer(attributes: WeightAttributes, types: Types) -> TensorType:
    require_f32(types)
    return declared(attributes, types)


OP = leaf(
    name="weight",
    summary="a trained constant, by its key in the weight file",
    documentation='Made by `weight NAME: TYPE = "KEY"`. Two declarations with the same key and type are one weight.',
    attributes=WeightAttributes,
    infer=infer,
    reference=same,
    legalisation=Given(),
    onnx=Declared("an initializer, under its key"),
    examples=(
        Example("one whole tile", WeightAttributes("fc1.w"), (f32(256, 256),)),
        Example("ragged", WeightAttributes("fc2.b"), (f32(257),)),
    ),
)
