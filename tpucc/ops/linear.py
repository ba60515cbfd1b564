"""linear: product, bias and activation in one. Internal: fusion makes it, and it becomes one FC layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ir.node import NoAttributes
from tpucc.ir.types import TensorType, f32
from tpucc.ops import matmul
from tpucc.ops.facts import product
from tpucc.ops.floats import Defined
from tpucc.ops.fused import Fused, defined_alone, defined_fused, infer_fused, onnx_activated, reference_fused
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Example, OpDef, Operand


@dataclass(frozen=True, slots=True)
class LinearAttributes(Fused):
    """The activation fused into the product."""


def infer(attributes: LinearAttributes, types: Sequence[TensorType]) -> TensorType:
    """`[..., K] @ [K, N] + [N]` is `[..., N]`; where the host writes the weights, there may be several matrices, as in matmul."""
    return infer_fused(attributes, matmul.infer(NoAttributes(), types[:2]), types[2:])


def reference(attributes: LinearAttributes, operands: Sequence[Array]) -> Array:
    return reference_fused(attributes, matmul.reference(NoAttributes(), operands[:2]), operands[2:])


def defined(attributes: LinearAttributes, operands: Sequence[Array], arithmetic: Arithmetic) -> Array:
    """One operator after the other, each as it is computed alone."""
    result = defined_alone(matmul.OP, NoAttributes(), operands[:2], arithmetic)
    return defined_fused(attributes, result, operands[2:], arithmetic)


def onnx(g: Call) -> str:
    made = g.node("MatMul", *g.operands[:2])
    return onnx_activated(g, g.node("Add", made, g.operands[2]) if g.operands[2:] else made)


OP = OpDef(
    name="linear",
    summary="activation(x @ w + b)",
    documentation=(
        "A product fused with the bias and the activation after it. The bias may be missing. It becomes one FC layer, whose activation "
        "unit adds the bias and applies the function. ONNX: Gemm, then the activation. Keras: Dense."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    attributes=LinearAttributes,
    infer=infer,
    reference=reference,
    legalisation=matmul.OP.legalisation,
    facts=product(fuses_into="linear"),
    gradient=Missing("made by fusion, after differentiation"),
    floats=Defined(defined),
    onnx=Form(onnx),
    examples=(
        Example("one whole tile", LinearAttributes(), (f32(8, 256), f32(256, 256))),
        Example("ragged, with bias", LinearAttributes(), (f32(3, 257), f32(257, 5), f32(5))),
        Example("with a clamp", LinearAttributes("relu"), (f32(2, 3, 4), f32(4, 5), f32(5))),
        Example("with a table", LinearAttributes("leaky_relu", (0.1,), (-4.0, 4.0)), (f32(3, 7), f32(7, 6), f32(6))),
    ),
)
