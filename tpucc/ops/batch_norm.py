"""batch_norm: batch normalisation with the statistics of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_f32, require_number, shown


@dataclass(frozen=True, slots=True)
class BatchNormAttributes:
    """`epsilon`: added to the variance, so that the division is safe.

    `momentum` is for training alone: the part of a moving average that a step keeps; the rest comes from the batch's statistics.
    """

    epsilon: float = 0.001
    momentum: float = 0.99


def infer(attributes: BatchNormAttributes, types: Types) -> TensorType:
    """`[..., C]` and four times `[C]`."""
    require_f32(types)
    if types[0].rank == 0:
        raise RuleError("E0303", "{0} is a scalar: it has no channels", about=(0,))
    channels = f32(types[0].columns)
    for index, type_ in enumerate(types[1:], 1):
        if type_.plain() != channels:
            raise RuleError("E0311", f"expected one value a channel, {channels}, found {type_.brief}", about=(0, index))
    if require_number(attributes.epsilon, "epsilon") < 0:
        raise RuleError("E0307", f"epsilon must not be negative{shown(attributes.epsilon)}", about=("epsilon",))
    if not 0 <= require_number(attributes.momentum, "momentum") <= 1:
        raise RuleError("E0307", f"momentum must be between 0 and 1{shown(attributes.momentum)}", about=("momentum",))
    return types[0].plain()


def reference(attributes: BatchNormAttributes, operands: Arrays) -> Array:
    x, gamma, beta, mean, variance = operands
    return np.asarray((x - mean) / np.sqrt(variance + np.float32(attributes.epsilon)) * gamma + beta)


def _batch(case: Case) -> Division:
    batch = case.only(0)
    if batch.axis == case.node.type.rank - 1:
        raise MixedError("batch_norm has a constant for each channel, and the batch lies along the channels")
    return Division(batch)


def gradient(g: Backward) -> Gradients:
    """With d = variance + epsilon and all sums over everything but the channels:

    dx = dy * gamma / sqrt(d), dgamma = sum(dy * (x - mean)) / sqrt(d), dbeta = sum(dy), dmean = -sum(dx) and
    dvariance = -sum(dx * (x - mean)) / (2 * d).
    """
    x, gamma, _, mean, variance = g.operands
    shifted = variance + g.attributes.epsilon
    deviation = shifted.call("sqrt")
    centred = x - mean
    dx = g.dy * (gamma / deviation)
    return (
        dx,
        (g.dy * centred).summed_to(gamma.shape) / deviation if g.wanted[1] else None,
        g.dy.summed_to(gamma.shape) if g.wanted[2] else None,
        -dx.summed_to(gamma.shape) if g.wanted[3] else None,
        (dx * centred).summed_to(gamma.shape) / (shifted * -2.0) if g.wanted[4] else None,
    )


def onnx(g: Call) -> str:
    """ONNX has the channels second: of other ranks the rows are a matrix for it."""
    x, *constants = g.operands
    flat = x if g.channels_first or g.result.rank == 2 else g.reshaped(x, -1, g.result.columns)
    made = g.node("BatchNormalization", flat, *constants, epsilon=float(g.attributes.epsilon))
    return made if flat == x else g.reshaped(made, *g.result.shape)


OP = OpDef(
    name="batch_norm",
    summary="gamma * (x - mean) / sqrt(variance + epsilon) + beta",
    documentation=(
        "The inference form of Ioffe and Szegedy, arXiv 1502.03167: the statistics are constants, one a channel (the last axis). It folds "
        "into the layer before it. With a computed variance it stays on the host, and the device waits for it. In training, the mean and "
        "the variance are those of the batch, and the constants move towards them: `momentum * constant + (1 - momentum) * batch`. The "
        "batch's variance is the mean of the squares, divided by the number m of values and not by m - 1; Ioffe and Szegedy use "
        "m / (m - 1) times as much in inference. Keras: BatchNormalization, with the same epsilon, momentum and variance. ONNX: "
        "BatchNormalization (its epsilon is 1e-5, its momentum 0.9)."
    ),
    operands=(Operand("x"), Operand("gamma"), Operand("beta"), Operand("mean"), Operand("variance")),
    attributes=BatchNormAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device has it only folded into the weights of the layer before"),
    facts=whole(batch=_batch, singular=(4,)),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example("one whole tile", BatchNormAttributes(), (f32(8, 256), *(f32(256),) * 4)),
        Example("ragged", BatchNormAttributes(1e-5), (f32(2, 3, 5, 7), *(f32(7),) * 4)),
    ),
)
