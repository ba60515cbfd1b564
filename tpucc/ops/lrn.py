"""lrn: local response normalisation, each value divided by a power of the squares of its neighbours along the channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir import Constant, TensorType
from tpucc.ops.axis import Axis
from tpucc.ops.batch import Division, beside
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import CHANNELS_FIRST, CHANNELS_LAST, Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import UNARY, require_axis, require_f32, require_integer, require_number
from tpucc.ops.windows import MAX_STEP, reduce_axis


@dataclass(frozen=True, slots=True)
class LrnAttributes:
    """`size` channels are summed over: (size - 1) // 2 before the value's own, and the rest from there on."""

    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0


def infer(attributes: LrnAttributes, types: Types) -> TensorType:
    require_f32(types)
    require_axis(-1, types[0].rank)
    require_integer(attributes.size, "size", 1, MAX_STEP)
    require_number(attributes.beta, "beta")
    if require_number(attributes.alpha, "alpha") < 0:
        raise RuleError("E0307", "alpha must be at least 0", about=("alpha",), help="the sum of squares is added to bias")
    if require_number(attributes.bias, "bias") <= 0:
        raise RuleError("E0307", "bias must be more than 0", about=("bias",), help="a power of what may be 0 isn't finite")
    return types[0].plain()


def _sums(attributes: LrnAttributes, x: Array) -> Array:
    """`bias + alpha / size * Σ x²`, the sum in ascending order of the channels, from 0 on."""
    before = (attributes.size - 1) // 2
    axis = Axis(x.shape[-1], attributes.size, 1, before, attributes.size - 1 - before)
    squares = reduce_axis(x * x, x.ndim - 1, axis, np.add, 0.0)
    return np.asarray(attributes.bias + attributes.alpha / attributes.size * squares)


def defined(attributes: LrnAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The power is exp(beta * log(…)) of the arithmetic."""
    return np.asarray(operands[0] / arithmetic.exp(np.float32(attributes.beta) * arithmetic.log(_sums(attributes, operands[0]))))


def summed(attributes: LrnAttributes, channels: int) -> Array:
    """1 where the channel of the row is in the sum of the column's, else 0: float32 [channels, channels]."""
    places = np.arange(channels) - np.arange(channels)[:, np.newaxis]  # how far the column is behind the row
    before = (attributes.size - 1) // 2
    return ((places >= before + 1 - attributes.size) & (places <= before)).astype(np.float32)


def gradient(g: Backward) -> Gradients:
    """With s = bias + alpha / size * Σ x² and p = s^-beta: dx = dy * p - 2 * alpha * beta / size * x * Σ' (dy * x * p / s).

    Σ' goes over the channels in whose sums x's square is. Both sums are products with a matrix of zeros and ones.
    """
    attributes, channels = g.attributes, g.operands[0].shape[-1]
    x = g.operands[0].reshape(g.operands[0].type.size // channels, channels)
    dy = g.dy.reshape(*x.shape)
    window = summed(attributes, channels)
    s = (x * x) @ x.builder.constant(Constant(window)) * (attributes.alpha / attributes.size) + attributes.bias
    power = (s.call("log") * -attributes.beta).call("exp")
    back = (dy * x * power / s) @ x.builder.constant(Constant(window.T.copy()))
    dx = dy * power - back * x * (2 * attributes.alpha * attributes.beta / attributes.size)
    return (dx.reshape(*g.operands[0].shape),)


def onnx(g: Call) -> str:
    """ONNX Runtime has no LRN of an even size: then the sum of squares is a product with a matrix of zeros and ones."""
    attributes, (x,) = g.attributes, g.operands
    if attributes.size % 2:
        flat = x if g.channels_first else g.reshaped(x, -1, g.result.columns, 1, 1)
        numbers = {name: float(getattr(attributes, name)) for name in ("alpha", "beta", "bias")}
        made = g.node("LRN", flat, size=attributes.size, **numbers)
        return made if flat == x else g.reshaped(made, *g.result.shape)
    last = x if not g.channels_first else g.node("Transpose", x, perm=list(CHANNELS_LAST))
    sums = g.node("MatMul", g.node("Mul", last, last), g.constant(summed(attributes, g.result.columns), "summed"))
    shares = g.node("Mul", sums, g.number(attributes.alpha / attributes.size, "share"))
    power = g.node("Pow", g.node("Add", shares, g.number(attributes.bias, "bias")), g.number(attributes.beta, "beta"))
    made = g.node("Div", last, power)
    return made if last == x else g.node("Transpose", made, perm=list(CHANNELS_FIRST))


OP = OpDef(
    name="lrn",
    summary="local response normalisation along the channels",
    documentation=(
        "x / (bias + alpha / size * Σ x²)^beta, the sum over `size` neighbouring channels: the last axis. AlexNet and GoogLeNet have it; "
        "batch_norm has taken its place. PyTorch's LocalResponseNorm has the larger half of an even size before the channel, ONNX's LRN "
        "behind it, as here. ONNX: LRN. TensorFlow: nn.local_response_normalization, whose size is 2 * depth_radius + 1 and whose alpha "
        "isn't divided by it."
    ),
    operands=(Operand("x"),),
    attributes=LrnAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=OnHost("the device has no sum along a row and no power"),
    facts=whole(batch=lambda case: Division(beside(case, -1))),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(onnx, Layout.IMAGES),
    examples=(
        Example(UNARY[0].title, LrnAttributes(5), UNARY[0].operands),
        Example("ragged, an even size", LrnAttributes(4, 0.5, 0.75, 2.0), (UNARY[1].operands[0],)),
        Example("more than all channels", LrnAttributes(9, 1.0, 0.5), (TensorType("f32", (2, 3, 3, 5)),)),
    ),
)
