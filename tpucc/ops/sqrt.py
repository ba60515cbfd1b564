"""sqrt: the square root."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, OnHost, OpDef, Operand
from tpucc.ops.rules import POSITIVE, unary


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    """NaN below 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(operands[0]))


def gradient(g: Backward) -> Gradients:
    """y = sqrt(x): dx = dy / (2 * y). It is infinite at 0, as the slope there is: `sqrt(x + 1e-7)` has a finite one."""
    return (g.dy / (2.0 * g.result),)


OP = OpDef(
    name="sqrt",
    summary="the square root, element by element",
    documentation="It is NaN below 0. Its gradient is infinite at 0: add a small number first. NumPy: sqrt. ONNX: Sqrt.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=reference,
    legalisation=OnHost("the device's tables are for activations, and those are defined for negative values too"),
    facts=whole(batch=each),
    gradient=Rule(gradient),
    floats=Ieee(),
    examples=POSITIVE,
)
