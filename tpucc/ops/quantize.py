"""quantize: from real values to int8, with parameters that the source fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import Quantisation, TensorType, f32
from tpucc.numerics import INT8_HIGH, INT8_LOW, quantise
from tpucc.ops.attributes import FLOAT32_NORMAL, require_integer, require_number, shown
from tpucc.ops.opdef import Array, Boundary, Example, OpDef, Operand, RuleError


@dataclass(frozen=True, slots=True)
class QuantizeAttributes:
    """real = scale * (integer - zero_point). `scale` is positive, and taken as float32; `zero_point` is in -128…127."""

    scale: float
    zero_point: int = 0


def quantisation(scale: object, zero_point: object) -> Quantisation:
    """The attributes `scale` and `zero_point`, checked; the scale as float32 has it. Raises `RuleError`."""
    if require_number(scale, "scale") < FLOAT32_NORMAL:
        raise RuleError("E0307", f"scale must be a positive normal float32 number{shown(scale)}", about=("scale",))
    return Quantisation(float(np.float32(require_number(scale, "scale"))), require_integer(zero_point, "zero_point", INT8_LOW, INT8_HIGH))


def infer(attributes: QuantizeAttributes, types: Sequence[TensorType]) -> TensorType:
    """An int8 type with these parameters. An f32 operand may have parameters of its own already: those that it is held with."""
    x = types[0]
    if x.dtype == "i8" and x.quantisation is not None:
        raise RuleError("E0315", f"{{0}} is quantised already: {x.quantisation}", about=(0,), help="dequantize it first")
    if x.dtype != "f32":
        raise RuleError("E0305", f"expected f32 values, found {x.brief}", about=(0,))
    return TensorType("i8", x.shape, quantisation=quantisation(attributes.scale, attributes.zero_point))


def reference(attributes: QuantizeAttributes, operands: Sequence[Array]) -> Array:
    """Values past the range saturate, even where the division overflows."""
    with np.errstate(over="ignore"):
        return quantise(operands[0], attributes.scale, attributes.zero_point)


OP = OpDef(
    name="quantize",
    summary="real values as int8: round(x / scale) + zero_point",
    documentation=(
        "Rounds half to even, adds the zero point, saturates. The compiler keeps these parameters and calibrates only the rest; after a "
        "layer it sets that layer's own requantisation, and no second rounding happens. ONNX: QuantizeLinear."
    ),
    operands=(Operand("x"),),
    attributes=QuantizeAttributes,
    infer=infer,
    reference=reference,
    legalisation=Boundary(),
    examples=(
        Example("one whole tile", QuantizeAttributes(0.02), (f32(8, 256),)),
        Example("ragged", QuantizeAttributes(0.1, -128), (f32(3, 5, 257),)),
    ),
)
