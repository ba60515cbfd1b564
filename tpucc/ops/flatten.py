"""flatten: all but the first axis made one."""

from __future__ import annotations

import math

from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops import reshape
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OpDef, Operand, RuleError, Types, View
from tpucc.ops.rules import require_sizes, reshaped


def infer(_: NoAttributes, types: Types) -> TensorType:
    """`[N, ...]` becomes `[N, product]`, and `[N]` becomes `[N, 1]`."""
    x = types[0]
    if x.rank == 0:
        raise RuleError("E0303", "{0} is a scalar: it has no first axis", about=(0,), help="reshape({0}, (1, 1)) makes a matrix of it")
    shape = (x.shape[0], math.prod(x.shape[1:]))
    require_sizes(shape, 0)
    return reshaped(x, shape)


def reference(_: NoAttributes, operands: Arrays) -> Array:
    x = operands[0]
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


OP = OpDef(
    name="flatten",
    summary="all axes but the first, joined into one",
    documentation="`[N, H, W, C]` becomes `[N, H * W * C]`, in the order of NumPy's reshape. Keras: Flatten. ONNX: Flatten with axis=1.",
    operands=(Operand("x"),),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=View(),
    facts=reshape.OP.facts,
    gradient=reshape.OP.gradient,
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Flatten", *g.operands, axis=1)),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 4, 4, 16),)),
        Example("ragged", NoAttributes(), (f32(3, 5, 257),)),
        Example("a vector", NoAttributes(), (f32(5),)),
    ),
)
