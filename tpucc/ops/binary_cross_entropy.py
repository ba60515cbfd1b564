"""binary_cross_entropy: how improbable a model holds the right answers to questions of yes or no."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes
from tpucc.ops import clip
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.losses import UNIT, loss_of_two_values, pairs, share
from tpucc.ops.onnx_form import Call, Form, clipped
from tpucc.ops.opdef import Array, Arrays, Defined, Operand

EPSILON = 1e-7
"""Keras' bound: probabilities are clipped to it and to 1 less it, so that no logarithm is infinite."""
CLIPPED = clip.ClipAttributes(EPSILON, 1 - EPSILON)


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The sum of y * log(p) + (1 - y) * log(1 - p), divided by its number of terms, with the sign turned."""
    p, y = clip.reference(CLIPPED, operands[:1]), operands[1]
    terms: Array = y * arithmetic.log(p) + (1 - y) * arithmetic.log(1 - p)
    return np.asarray(-(arithmetic.sum(terms, tuple(range(terms.ndim))) / terms.size))


def gradient(g: Backward) -> Gradients:
    """With q, p clipped: dp = (q - y) / (q * (1 - q)) * dy / n where q isn't a bound, else 0; dy = (log(1 - q) - log(q)) * dy / n."""
    p, y = g.operands
    q = p.call("clip", low=CLIPPED.low, high=CLIPPED.high)
    inside = (q > CLIPPED.low) * (q < CLIPPED.high)
    dp = inside.call("where", (q - y) / (q * (1.0 - q)), 0.0) * share(g, p)
    return dp, ((1.0 - q).call("log") - q.call("log")) * share(g, p) if g.wanted[1] else None


def onnx(g: Call) -> str:
    one, (_, y) = g.number(1.0, "one"), g.operands
    p = clipped(g, CLIPPED.low, CLIPPED.high)
    yes = g.node("Mul", y, g.node("Log", p))
    no = g.node("Mul", g.node("Sub", one, y), g.node("Log", g.node("Sub", one, p)))
    return g.node("Neg", g.node("ReduceMean", g.node("Add", yes, no), keepdims=0))


OP = loss_of_two_values(
    name="binary_cross_entropy",
    summary="the mean of -(y * log(p) + (1 - y) * log(1 - p)), over all values",
    documentation=(
        "`p` are probabilities of yes, as sigmoid gives them, and `y` of the same shape is 1.0 for yes and 0.0 for no. `p` is clipped to "
        "1e-7…1 - 1e-7 first. Keras: BinaryCrossentropy. PyTorch: binary_cross_entropy."
    ),
    operands=(Operand("p"), Operand("y")),
    reference=in_plain(defined),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx),
    examples=pairs(UNIT),
)
