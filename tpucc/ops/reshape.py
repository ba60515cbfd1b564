"""reshape: the same values in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.ir.types import TensorType, f32
from tpucc.ops.attributes import require_integers, require_shape
from tpucc.ops.opdef import Array, Example, OpDef, Operand, RuleError, View
from tpucc.ops.rules import reshaped


@dataclass(frozen=True, slots=True)
class ReshapeAttributes:
    """`shape`: the sizes; one of them may be -1, and is worked out."""

    shape: tuple[int, ...]


def infer(attributes: ReshapeAttributes, types: Sequence[TensorType]) -> TensorType:
    x = types[0]
    wanted = require_integers(attributes.shape, "shape")
    if wanted.count(-1) > 1:
        raise RuleError("E0309", "only one size may be -1", about=("shape",))
    known = require_shape([size for size in wanted if size != -1])
    product = math.prod(known)
    if product != x.size if -1 not in wanted else x.size % product:
        raise RuleError("E0309", f"{{0}} has {x.size:,} elements, which {_sizes(wanted)} can't hold", about=(0, "shape"), help=_help(x))
    return reshaped(x, require_shape(tuple(x.size // product if size == -1 else size for size in wanted)))


def _sizes(wanted: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, wanted))}{',' if len(wanted) == 1 else ''})" if len(wanted) <= 8 else "the shape"


def _help(x: TensorType) -> str:
    return f"({x.shape[0]}, -1) keeps the first axis and works out the second" if x.rank > 1 else "one size may be -1, and is worked out"


def reference(attributes: ReshapeAttributes, operands: Sequence[Array]) -> Array:
    return operands[0].reshape(require_integers(attributes.shape, "shape"))


OP = OpDef(
    name="reshape",
    summary="the same values in another shape",
    documentation=(
        "The values stay in NumPy's order, the last axis fastest. One size may be -1. On the device it moves no data as long as the last "
        "size stays. ONNX: Reshape (there 0 copies a size, here it is an error). NumPy: reshape."
    ),
    operands=(Operand("x"),),
    attributes=ReshapeAttributes,
    infer=infer,
    reference=reference,
    legalisation=View(),
    examples=(
        Example("one whole tile", ReshapeAttributes((4, 2, 256)), (f32(8, 256),)),
        Example("ragged", ReshapeAttributes((-1, 257)), (f32(3, 5, 257),)),
        Example("to a scalar", ReshapeAttributes(()), (f32(1, 1),)),
    ),
)
