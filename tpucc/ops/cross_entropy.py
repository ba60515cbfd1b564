"""cross_entropy: how improbable a model holds the right classes."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes, Range
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.losses import at_labels, hot, labelled, loss_of_labels, of_labels, onnx_items, share
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Defined, Operand


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The sum of -log p[label] over all items, divided by their number."""
    p, label = operands
    losses = -arithmetic.log(at_labels(p, label, "cross_entropy"))
    return np.asarray(arithmetic.sum(losses, tuple(range(losses.ndim))) / losses.size)


def gradient(g: Backward) -> Gradients:
    """dp = -dy / n / p at the labels, 0 elsewhere; n is the number of labels."""
    p, label = g.operands
    return hot(g).call("where", -share(g, label) / p, 0.0), None


def onnx(g: Call) -> str:
    return g.node("NegativeLogLikelihoodLoss", *onnx_items(g, g.node("Log", g.operands[0])), reduction="mean")


OP = loss_of_labels(
    name="cross_entropy",
    summary="the mean of -log p[label]",
    documentation=(
        "`p` are probabilities, the classes along the last axis, as softmax gives them; `label` has for each row the number of its right "
        "class. A label that is no class is an error when the model runs. Keras: SparseCategoricalCrossentropy. "
        "ONNX: NegativeLogLikelihoodLoss of Log. PyTorch's cross_entropy takes values before the softmax."
    ),
    operands=(Operand("p"), Operand("label")),
    reference=in_plain(defined),
    facts=whole(batch=of_labels, singular=(0,)),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx),
    examples=labelled(Range(0.1, 1.0)),
)
