"""quantize: from real values to the device's integers, with parameters that the source fixes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import listed
from tpucc.ir import Quantisation, TensorType, f32
from tpucc.ir.dtypes import BY_BITS, INTEGER_FORMATS, IntegerFormat
from tpucc.numerics import quantise
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Boundary, Example, Ieee, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import FLOAT32_NORMAL, require_integer, require_number, shown


@dataclass(frozen=True, slots=True)
class QuantizeAttributes:
    """real = scale * (integer - zero_point). `scale` is positive; float32 is used of it. `zero_point` is one of the integers of `bits`."""

    scale: float
    zero_point: int = 0
    bits: int = 8

    @property
    def format(self) -> IntegerFormat:
        """The integers of `bits`. Raises `RuleError`."""
        if self.bits not in BY_BITS:
            raise RuleError("E0307", f"bits must be {listed([*map(str, BY_BITS)], 'or')}{shown(self.bits)}", about=("bits",))
        return BY_BITS[self.bits]


def quantisation(scale: object, zero_point: object, format: IntegerFormat) -> Quantisation:
    """The attributes `scale` and `zero_point`, checked. Raises `RuleError`."""
    if require_number(scale, "scale") < FLOAT32_NORMAL:
        raise RuleError("E0307", f"scale must be a positive normal float32 number{shown(scale)}", about=("scale",))
    return Quantisation(require_number(scale, "scale"), require_integer(zero_point, "zero_point", format.low, format.high))


def infer(attributes: QuantizeAttributes, types: Types) -> TensorType:
    """An integer type with these parameters. An f32 operand may have others: those with which the device holds it, which end here."""
    x = types[0]
    if x.dtype in INTEGER_FORMATS and x.quantisation is not None:
        raise RuleError("E0315", f"{{0}} is quantised already: {x.quantisation}", about=(0,), help="dequantize it first")
    if x.dtype != "f32":
        raise RuleError("E0305", f"expected f32 values, found {x.brief}", about=(0,))
    format = attributes.format
    return TensorType(format.name, x.shape, quantisation=quantisation(attributes.scale, attributes.zero_point, format))


def reference(attributes: QuantizeAttributes, operands: Arrays) -> Array:
    """Values past the range saturate, even where the division overflows."""
    with np.errstate(over="ignore"):
        return quantise(operands[0], attributes.scale, attributes.zero_point, attributes.format)


def onnx(g: Call) -> str:
    held = g.result.quantisation
    assert held is not None
    zero = np.asarray(held.zero_point, g.result.numpy)
    return g.node("QuantizeLinear", *g.operands, g.number(held.scale, "scale"), g.constant(zero, "zero_point"))


OP = OpDef(
    name="quantize",
    summary="real values as integers: round(x / scale) + zero_point",
    documentation=(
        "Rounds half to even, adds the zero point, saturates. The compiler keeps these parameters and calibrates only values without "
        "them. After a layer they become the parameters of that layer's results, so values are rounded only once. The integers are "
        "int8, or int16 with `bits=16`. Values have the bits of the model's activations, and constants have 8. ONNX: QuantizeLinear."
    ),
    operands=(Operand("x"),),
    attributes=QuantizeAttributes,
    infer=infer,
    reference=reference,
    legalisation=Boundary(into_integers=True),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Missing("it rounds, and its slope is 0 wherever it has one"),
    floats=Ieee(),
    onnx=Form(onnx, Layout.ANY),
    examples=(
        Example("one whole tile", QuantizeAttributes(0.02), (f32(8, 256),)),
        Example("ragged", QuantizeAttributes(0.1, -128), (f32(3, 5, 257),)),
        Example("of 16 bits", QuantizeAttributes(0.001, bits=16), (f32(3, 5, 257),)),
    ),
)
