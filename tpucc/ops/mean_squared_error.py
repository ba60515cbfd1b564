"""mean_squared_error: how far values are from those that they should be."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.losses import loss_of_two_values, pairs, share
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Defined, Operand


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The sum of the squares, divided by their number."""
    squares = np.square(operands[0] - operands[1])
    return np.asarray(arithmetic.sum(squares, tuple(range(squares.ndim))) / squares.size)


def gradient(g: Backward) -> Gradients:
    """da = 2 * (a - b) * dy / n, db = -da; n is the number of values in each operand."""
    a, b = g.operands
    da = (a - b) * (2.0 * share(g, a))
    return da, -da


def onnx(g: Call) -> str:
    difference = g.node("Sub", *g.operands)
    return g.node("ReduceMean", g.node("Mul", difference, difference), keepdims=0)


OP = loss_of_two_values(
    name="mean_squared_error",
    summary="the mean of (a - b)², over all values",
    documentation="Both have one shape: nothing is repeated. Keras: MeanSquaredError. PyTorch: mse_loss. ONNX: ReduceMean of a square.",
    operands=(Operand("a"), Operand("b")),
    reference=in_plain(defined),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx),
    examples=pairs(),
)
