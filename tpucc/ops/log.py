"""log: the natural logarithm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.floats import Defined
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.opdef import Array, OnHost, OpDef, Operand
from tpucc.ops.rules import POSITIVE, unary


def reference(_: NoAttributes, operands: Sequence[Array]) -> Array:
    """Minus infinity at 0, NaN below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(operands[0]))


def gradient(g: Backward) -> Gradients:
    """y = log(x): dx = dy / x."""
    return (g.dy / g.operands[0],)


OP = OpDef(
    name="log",
    summary="the natural logarithm, element by element",
    documentation="It is minus infinity at 0 and NaN below: `log(maximum(x, 1e-7))` is safe. NumPy: log. ONNX: Log.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=reference,
    legalisation=OnHost("the device's tables are for activations: quantised values have a zero, and it has no logarithm"),
    facts=whole(batch=each),
    gradient=Rule(gradient),
    floats=Defined(lambda _, operands, arithmetic: arithmetic.log(operands[0])),
    examples=POSITIVE,
)
