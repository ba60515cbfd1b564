"""batch_norm: batch normalisation with the statistics of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import TensorType, f32
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.floats import Ieee
from tpucc.ops.gradient import Missing
from tpucc.ops.opdef import Array, Example, OnHost, OpDef, Operand, RuleError
from tpucc.ops.rules import require_f32, require_number, shown


@dataclass(frozen=True, slots=True)
class BatchNormAttributes:
    """`epsilon`: added to the variance, so that the division is safe."""

    epsilon: float = 0.001


def infer(attributes: BatchNormAttributes, types: Sequence[TensorType]) -> TensorType:
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
    return types[0].plain()


def reference(attributes: BatchNormAttributes, operands: Sequence[Array]) -> Array:
    x, gamma, beta, mean, variance = operands
    return np.asarray((x - mean) / np.sqrt(variance + np.float32(attributes.epsilon)) * gamma + beta)


def _batch(case: Case) -> Division:
    batch = case.only(0)
    if batch.axis == case.node.type.rank - 1:
        raise MixedError("batch_norm has a constant for each channel, and the batch lies along the channels")
    return Division(batch)


OP = OpDef(
    name="batch_norm",
    summary="gamma * (x - mean) / sqrt(variance + epsilon) + beta",
    documentation=(
        "The inference form of Ioffe and Szegedy, arXiv 1502.03167: the statistics are constants, one a channel (the last axis). It folds "
        "into the layer before it. Keras: BatchNormalization, with the same epsilon. ONNX: BatchNormalization (its epsilon is 1e-5)."
    ),
    operands=(Operand("x"), Operand("gamma"), Operand("beta"), Operand("mean"), Operand("variance")),
    attributes=BatchNormAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device has it only folded into the weights of the layer before"),
    facts=whole(batch=_batch),
    gradient=Missing("to be written"),
    floats=Ieee(),
    examples=(
        Example("one whole tile", BatchNormAttributes(), (f32(8, 256), *(f32(256),) * 4)),
        Example("ragged", BatchNormAttributes(1e-5), (f32(2, 3, 5, 7), *(f32(7),) * 4)),
    ),
)
