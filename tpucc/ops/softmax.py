"""softmax: exponentials along one axis, divided by their sum."""

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
from tpucc.ops.opdef import Array, Arrays, Defined, Example, OnHost, OpDef, Operand, Types
from tpucc.ops.rules import require_axis, require_f32


@dataclass(frozen=True, slots=True)
class SoftmaxAttributes:
    """`axis`: the one along which the results sum to 1; negative ones count from the end."""

    axis: int = -1


def infer(attributes: SoftmaxAttributes, types: Types) -> TensorType:
    require_f32(types)
    require_axis(attributes.axis, types[0].rank)
    return types[0].plain()


def exponentials(x: Array, axis: int, arithmetic: Arithmetic) -> tuple[Array, Array, Array]:
    """x less its largest value along the axis, the exponentials of that, and their sums, in which the axis has size 1.

    Less the largest value the result is the same, and no exponential overflows. A difference may, to minus infinity, of which the
    exponential is 0 as it should be.

    The gradient of a cross entropy needs the softmax of the same values: `Arithmetic.once` computes them for both.
    """
    largest = np.maximum.reduce(x, axis, keepdims=True)
    shifted = x - largest
    powers = arithmetic.exp(shifted)
    return shifted, powers, arithmetic.sum(powers, (axis,)).reshape(largest.shape)


def defined(attributes: SoftmaxAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    x = operands[0]
    axis = attributes.axis % x.ndim
    _, powers, sums = arithmetic.once(exponentials, x, axis)
    return np.asarray(powers / sums)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = y * (dy - sum(dy * y)), the sum along the axis."""
    axis = g.attributes.axis % g.result.type.rank
    return [g.result * (g.dy - (g.dy * g.result).sum((axis,), keepdims=True))]
    # lab 10 end


OP = OpDef(
    name="softmax",
    summary="exp(x) divided by its sum along an axis",
    documentation="Positive values that sum to 1 along `axis`: the probabilities of classes. ONNX: Softmax (opset 13). Keras: softmax.",
    operands=(Operand("x"),),
    attributes=SoftmaxAttributes,
    infer=infer,
    reference=in_plain(defined),
    legalisation=OnHost("the device has no sum along a row and no division"),
    facts=whole(batch=lambda case: Division(beside(case, case.attributes.axis))),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(lambda g: g.node("Softmax", *g.operands, axis=g.attributes.axis)),
    examples=(
        Example("one whole tile", SoftmaxAttributes(), (f32(8, 256),)),
        Example("ragged, along the first axis", SoftmaxAttributes(0), (f32(3, 5, 257),)),
    ),
)
