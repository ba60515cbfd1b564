"""input: a value that the caller brings. Internal: `model f(x: f32[8, 256])` makes it, no call does.

An input has no operands and a declared type, which is what `infer` checks and `reference` passes on: each gets it as the only element of
its sequence. The node's name is the input's name.
"""

from __future__ import annotations

from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import Declared
from tpucc.ops.opdef import Example, Given
from tpucc.ops.rules import declared, same

OP = leaf(
    name="input",
    summary="an input of the model",
    documentation=(
        "Made by the parameters of `model`. Its type is declared there. The caller's array must have exactly that type and shape."
    ),
    attributes=NoAttributes,
    infer=declared,
    reference=same,
    legalisation=Given(),
    onnx=Declared("an input of the graph"),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 256),)),
        Example("ragged", NoAttributes(), (f32(3, 257),)),
        Example("indices", NoAttributes(), (TensorType("i32", (4, 250)),)),
    ),
)
