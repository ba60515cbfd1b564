"""ones: a constant of ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ops import zeros
from tpucc.ops.facts import given
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import LEAF
from tpucc.ops.onnx_form import constant_of
from tpucc.ops.opdef import Array, OpDef
from tpucc.ops.rules import require_shape
from tpucc.ops.zeros import SHAPES, ShapeAttributes, infer


def reference(attributes: ShapeAttributes, _: Sequence[Array]) -> Array:
    return np.ones(require_shape(attributes.shape), np.float32)


OP = OpDef(
    name="ones",
    summary="a constant of ones",
    documentation="`ones([2, 3])` is f32[2, 3]. NumPy: ones. ONNX: ConstantOfShape.",
    operands=(),
    attributes=ShapeAttributes,
    infer=infer,
    reference=reference,
    legalisation=zeros.OP.legalisation,
    facts=given(),
    gradient=LEAF,
    floats=Ieee(),
    onnx=constant_of(lambda _: 1.0),
    examples=SHAPES,
)
