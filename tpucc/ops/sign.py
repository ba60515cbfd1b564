"""sign: -1, 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ops.batch import each
from tpucc.ops.comparisons import FLAT
from tpucc.ops.facts import whole
from tpucc.ops.floats import Ieee
from tpucc.ops.opdef import Array, OnHost, OpDef, Operand
from tpucc.ops.rules import UNARY, unary


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    return np.asarray(np.sign(operands[0]))


OP = OpDef(
    name="sign",
    summary="-1.0, 0.0 or 1.0, element by element",
    documentation="The sign of each value; its gradient is 0. NumPy: sign. ONNX: Sign.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=reference,
    legalisation=OnHost("the device's tables are for activations"),
    facts=whole(batch=each),
    gradient=FLAT,
    floats=Ieee(),
    examples=UNARY,
)
