"""full: a constant of one value, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import TensorType, f32
from tpucc.ops import zeros
from tpucc.ops.facts import given
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import LEAF
from tpucc.ops.onnx_form import constant_of
from tpucc.ops.opdef import Array, Example, OpDef
from tpucc.ops.rules import require_number, require_shape


@dataclass(frozen=True, slots=True)
class FullAttributes:
    """`shape`: the sizes, all at least 1; none for a scalar. `value`: a finite float32 number."""

    shape: tuple[int, ...]
    value: float


def infer(attributes: FullAttributes, _: Sequence[TensorType]) -> TensorType:
    require_number(attributes.value, "value")
    return f32(*require_shape(attributes.shape))


def reference(attributes: FullAttributes, _: Sequence[Array]) -> Array:
    return np.full(require_shape(attributes.shape), attributes.value, np.float32)


OP = OpDef(
    name="full",
    summary="a constant whose elements are all one value",
    documentation="`full([2, 3], 0.5)` is f32[2, 3]. NumPy: full. ONNX: ConstantOfShape.",
    operands=(),
    attributes=FullAttributes,
    infer=infer,
    reference=reference,
    legalisation=zeros.OP.legalisation,
    facts=given(),
    gradient=LEAF,
    floats=Ieee(),
    onnx=constant_of(lambda attributes: attributes.value),
    examples=(
        Example("one whole tile", FullAttributes((256, 256), 0.5), ()),
        Example("ragged", FullAttributes((3, 5, 257), 0.5), ()),
        Example("a scalar", FullAttributes((), 0.5), ()),
    ),
)
