"""ones: a constant of ones."""

from __future__ import annotations

import numpy as np

from tpucc.ops import zeros
from tpucc.ops.families import leaf
from tpucc.ops.onnx_form import constant_of
from tpucc.ops.opdef import Array, Arrays
from tpucc.ops.rules import require_shape
from tpucc.ops.zeros import SHAPES, ShapeAttributes, infer


def reference(attributes: ShapeAttributes, _: Arrays) -> Array:
    return np.ones(require_shape(attributes.shape), np.float32)


OP = leaf(
    name="ones",
    summary="a constant of ones",
    documentation="`ones([2, 3])` is f32[2, 3]. NumPy: ones. ONNX: ConstantOfShape.",
    attributes=ShapeAttributes,
    infer=infer,
    reference=reference,
    legalisation=zeros.OP.legalisation,
    onnx=constant_of(lambda _: 1.0),
    examples=SHAPES,
)
