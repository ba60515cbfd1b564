"""linear: product, bias and activation in one. Internal: fusion makes it, and it becomes one FC layer."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import f32
from tpucc.ops import matmul
from tpucc.ops.facts import product
from tpucc.ops.fused import Fused, fused
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Example, Operand


@dataclass(frozen=True, slots=True)
class LinearAttributes(Fused):
    """The activation fused into the product."""


def onnx(g: Call) -> str:
    made = g.node("MatMul", *g.operands[:2])
    return g.node("Add", made, g.operands[2]) if g.operands[2:] else made


OP = fused(
    LinearAttributes,
    lambda _: matmul.OP,
    Form(onnx),
    name="linear",
    summary="activation(x @ w + b)",
    documentation=(
        "A product fused with the bias and the activation after it. The bias may be missing. It becomes one FC layer, whose activation "
        "unit adds the bias and applies the function. ONNX: Gemm, then the activation. Keras: Dense."
    ),
    operands=(Operand("x"), Operand("w"), Operand("b", optional=True)),
    legalisation=matmul.OP.legalisation,
    facts=product(fuses_into="linear"),
    examples=(
        Example("one whole tile", LinearAttributes(), (f32(8, 256), f32(256, 256))),
        Example("ragged, with bias", LinearAttributes(), (f32(3, 257), f32(257, 5), f32(5))),
        Example("with a clamp", LinearAttributes("relu"), (f32(2, 3, 4), f32(4, 5), f32(5))),
        Example("with a table", LinearAttributes("leaky_relu", (0.1,), (-4.0, 4.0)), (f32(3, 7), f32(7, 6), f32(6))),
    ),
)
