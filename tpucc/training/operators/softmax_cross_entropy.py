"""softmax_cross_entropy: the cross entropy of a softmax, from the values before it. Internal: training makes it of the two."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import NoAttributes, Range
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.losses import at_labels, hot, labelled, loss_of_labels, onnx_items, share
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Defined, Operand
from tpucc.ops.softmax import exponentials


def defined(_: NoAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """log(sum(exp(z))) - z[label], with the largest value of each row subtracted first: nothing overflows. The mean over all items.

    Raises `InputError` (E0454) for a label that is no class.
    """
    z, label = operands
    shifted, _powers, sums = arithmetic.once(exponentials, z, z.ndim - 1)
    losses = arithmetic.log(sums.reshape(label.shape)) - at_labels(shifted, label, "softmax_cross_entropy")
    return np.asarray(arithmetic.sum(losses, tuple(range(losses.ndim))) / losses.size)


def gradient(g: Backward) -> Gradients:
    """dz = (softmax(z) - one_hot(label)) * dy / n; n is the number of labels."""
    z, label = g.operands
    return (z.call("softmax") - hot(g)) * share(g, label), None


def onnx(g: Call) -> str:
    return g.node("SoftmaxCrossEntropyLoss", *onnx_items(g, g.operands[0]), reduction="mean")


OP = loss_of_labels(
    name="softmax_cross_entropy",
    summary="the mean of -log softmax(z)[label]",
    documentation=(
        "Made of `cross_entropy(softmax(z), label)`: the loss of a very improbable class stays finite, and the gradient is the difference "
        "of the probabilities and the right ones. Keras: SparseCategoricalCrossentropy(from_logits=True). ONNX: SoftmaxCrossEntropyLoss. "
        "PyTorch: cross_entropy."
    ),
    operands=(Operand("z"), Operand("label")),
    reference=in_plain(defined),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx),
    examples=labelled(Range(-9.0, 9.0)),
)
