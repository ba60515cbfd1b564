"""zeros: a constant of zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import constant_of
from tpucc.ops.opdef import Array, Arrays, Example, OnHost, OpDef, Types
from tpucc.ops.rules import require_shape


@dataclass(frozen=True, slots=True)
class ShapeAttributes:
    """`shape`: the sizes, all at least 1; none for a scalar."""

    shape: tuple[int, ...]


SHAPES = (
    Example("one whole tile", ShapeAttributes((256, 256)), ()),
    Example("ragged", ShapeAttributes((3, 5, 257)), ()),
    Example("a scalar", ShapeAttributes(()), ()),
)
"""The examples of constants that are nothing but a shape."""


def infer(attributes: ShapeAttributes, _: Types) -> TensorType:
    return f32(*require_shape(attributes.shape))


KNOWN = OnHost("it is known when compiling, and becomes a constant where constants are folded")


def filled(name: str, number: float) -> OpDef[ShapeAttributes]:
    """The operator `name`: a constant of this number."""

    def reference(attributes: ShapeAttributes, _: Arrays) -> Array:
        return np.full(require_shape(attributes.shape), number, np.float32)

    return leaf(
        name=name,
        summary=f"a constant of {name}",
        documentation=f"`{name}([2, 3])` is f32[2, 3]. NumPy: {name}. ONNX: ConstantOfShape.",
        attributes=ShapeAttributes,
        infer=infer,
        reference=reference,
        legalisation=KNOWN,
        onnx=constant_of(lambda _: number),
        examples=SHAPES,
    )


OP = filled("zeros", 0.0)
