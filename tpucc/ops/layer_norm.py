"""layer_norm: each row normalised by its own mean and variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import TensorType, f32
from tpucc.ops.batch import Division, beside
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_f32, require_number, shown


@dataclass(frozen=True, slots=True)
class LayerNormAttributes:
    """`epsilon` is added to the variance. With 0, a row of equal values has no result: it divides 0 by 0."""

    epsilon: float = 1e-5


def infer(attributes: LayerNormAttributes, types: Types) -> TensorType:
    """x `[..., C]`, gamma `[C]` and beta `[C]`; the result has the type of x. Raises `RuleError`."""
    require_f32(types)
    if types[0].rank == 0:
        raise RuleError("E0303", "{0} is a scalar: it has no last axis", about=(0,))
    expected = f32(types[0].columns)
    for index, type_ in enumerate(types[1:], 1):
        if type_.plain() != expected:
            raise RuleError("E0311", f"expected one value a column, {expected}, found {type_.brief}", about=(0, index))
    if require_number(attributes.epsilon, "epsilon") < 0:
        raise RuleError("E0307", f"epsilon must not be negative{shown(attributes.epsilon)}", about=("epsilon",))
    return types[0].plain()


def defined(attributes: LayerNormAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The variance is the mean of (x - mean)², not the mean of x² minus mean², in which most digits may cancel.

    Each mean is a sum in the order of `arithmetic`, divided by the number of columns.
    """
    x, gamma, beta = operands

    def mean(values: Array) -> Array:
        return np.expand_dims(arithmetic.sum(values, (x.ndim - 1,)) / np.float32(x.shape[-1]), -1)

    centred = x - mean(x)
    variance = mean(centred * centred)
    return np.asarray(centred / np.sqrt(variance + variance.dtype.type(attributes.epsilon)) * gamma + beta)


def gradient(g: Backward) -> Gradients:
    """With h = (x - mean) / sqrt(variance + epsilon) and t = dy * gamma, means along the last axis and sums along all others:

    dx = (t - mean(t) - h * mean(t * h)) / sqrt(variance + epsilon), dgamma = sum(dy * h) and dbeta = sum(dy).
    """
    x, gamma, beta = g.operands
    centred = x - x.call("mean", axis=-1, keepdims=True)
    deviation = ((centred * centred).call("mean", axis=-1, keepdims=True) + g.attributes.epsilon).call("sqrt")
    h, t = centred / deviation, g.dy * gamma
    along = h * (t * h).call("mean", axis=-1, keepdims=True)
    return (
        (t - t.call("mean", axis=-1, keepdims=True) - along) / deviation if g.wanted[0] else None,
        (g.dy * h).summed_to(gamma.shape) if g.wanted[1] else None,
        g.dy.summed_to(beta.shape) if g.wanted[2] else None,
    )


OP = OpDef(
    name="layer_norm",
    summary="gamma * (x - mean) / sqrt(variance + epsilon) + beta, with each row's own statistics",
    documentation=(
        "Mean and variance are those of each row, along the last axis; `gamma` and `beta` have one value a column (Ba, Kiros and Hinton, "
        "arXiv 1607.06450). The host computes it in float32. PyTorch: LayerNorm, with the same epsilon. Keras: LayerNormalization (its "
        "epsilon is 1e-3). ONNX: LayerNormalization."
    ),
    operands=(Operand("x"), Operand("gamma"), Operand("beta")),
    attributes=LayerNormAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=OnHost("the device has no mean along a row and no division"),
    facts=whole(batch=lambda case: Division(beside(case, -1))),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(lambda g: g.node("LayerNormalization", *g.operands, axis=-1, epsilon=float(g.attributes.epsilon))),
    examples=(
        Example("one whole tile", LayerNormAttributes(), (f32(8, 256), f32(256), f32(256))),
        Example("ragged", LayerNormAttributes(1e-3), (f32(3, 5, 57), f32(57), f32(57))),
    ),
)
