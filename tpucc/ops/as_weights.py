"""as_weights: a computed value that the host writes to weight memory. Internal: the pass `write-weights` makes it."""

from __future__ import annotations

from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_f32


def infer(_: NoAttributes, types: Types) -> TensorType:
    """The matrices `w` of products `rows @ w`, [..., K, N], as plain float32."""
    require_f32(types)
    if types[0].rank < 2:
        raise RuleError("E0303", "{0} must have at least two dimensions, those of a matrix", about=(0,))
    return f32(*types[0].shape)


def reference(_: NoAttributes, operands: Arrays) -> Array:
    return operands[0]


OP = OpDef(
    name="as_weights",
    summary="a value as the weights of a product",
    documentation=(
        "While the program runs, the host computes the value, or reads it back from the device. It writes the value to weight memory as "
        "tiles of 8-bit integers, with one scale for all of them and the zero point 0. The matrix unit then multiplies by it. Without "
        "quantisation it is the value itself."
    ),
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("only the host writes to weight memory"),
    facts=whole(batch=each),
    gradient=Missing("made after differentiation"),
    floats=Ieee(),
    onnx=of_elements("Identity"),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(256, 256),)),
        Example("ragged matrices, of more rows than a tile", NoAttributes(), (f32(2, 3, 257, 5),)),
    ),
)
