"""full: a constant of one value, repeated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import constant_of
from tpucc.ops.opdef import Array, Arrays, Example, Types
from tpucc.ops.rules import require_number, require_shape
from tpucc.ops.zeros import KNOWN


@dataclass(frozen=True, slots=True)
class FullAttributes:
    """`shape`: the sizes, all at least 1; none for a scalar. `value`: a finite float32 number."""

    shape: tuple[int, ...]
    value: float


def infer(attributes: FullAttributes, _: Types) -> TensorType:
    require_number(attributes.value, "value")
    return f32(*require_shape(attributes.shape))


def reference(attributes: FullAttributes, _: Arrays) -> Array:
    return np.full(require_shape(attributes.shape), attributes.value, np.float32)


OP = leaf(
    name="full",
    summary="a constant whose elements are all one value",
    documentation="`full([2, 3], 0.5)` is f32[2, 3]. NumPy: full. ONNX: ConstantOfShape.",
    attributes=FullAttributes,
    infer=infer,
    reference=reference,
    legalisation=KNOWN,
    onnx=constant_of(lambda attributes: attributes.value),
    examples=(
        Example("one whole tile", FullAttributes((256, 256), 0.5), ()),
        Example("ragged", FullAttributes((3, 5, 257), 0.5), ()),
        Example("a scalar", FullAttributes((), 0.5), ()),
    ),
)
