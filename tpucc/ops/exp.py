"""exp: the exponential function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.floats import Defined
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, OnHost, OpDef, Operand
from tpucc.ops.rules import UNARY, unary


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    """Infinite where it overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(operands[0]))


def gradient(g: Backward) -> Gradients:
    """y = exp(x): dx = dy * y."""
    return (g.dy * g.result,)


OP = OpDef(
    name="exp",
    summary="e to the power of x, element by element",
    documentation="Above about 88.7 it is infinite in float32. NumPy: exp. ONNX: Exp.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=reference,
    legalisation=OnHost("the device's tables are for activations: 256 steps are too coarse for what grows so fast"),
    facts=whole(batch=each),
    gradient=Rule(gradient),
    floats=Defined(lambda _, operands, arithmetic: arithmetic.exp(operands[0])),
    examples=UNARY,
)
