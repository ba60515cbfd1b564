"""tanh: the hyperbolic tangent."""

from __future__ import annotations

import numpy as np

from tpucc.ir.graph import NoAttributes
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Missing
from tpucc.ops.opdef import Array, OpDef, Operand, Table
from tpucc.ops.rules import UNARY, applied, unary


def function(_: NoAttributes, x: Array) -> Array:
    return np.asarray(np.tanh(x))


OP = OpDef(
    name="tanh",
    summary="the hyperbolic tangent, element by element",
    documentation="On the device it is a table of 256 entries in the layer before it. ONNX: Tanh.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=unary,
    reference=applied(function),
    legalisation=Table(function),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Missing("to be written"),
    floats=Ieee(),
    examples=UNARY,
)
