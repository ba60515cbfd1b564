"""dequantize: from integers back to real values.

The source writes `dequantize(q)`: the parameters are those of q's type. The arithmetic needs them as attributes; `explicit` fills them in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import listed
from tpucc.ir import Quantisation, TensorType, f32
from tpucc.ir.dtypes import DEFAULT_FORMAT, INTEGER_FORMATS
from tpucc.numerics import dequantise
from tpucc.ops.facts import always, of_one_value
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Boundary, Example, Ieee, OpDef, Operand, RuleError, Types
from tpucc.ops.quantize import quantisation


@dataclass(frozen=True, slots=True)
class DequantizeAttributes:
    """real = scale * (integer - zero_point); without a scale, both are those of the operand's type."""

    scale: float | None = None
    zero_point: int = 0


def explicit(attributes: DequantizeAttributes, type_: TensorType) -> DequantizeAttributes:
    """The attributes with the parameters of the operand's type where they have none. Raises `RuleError`."""
    if attributes.scale is not None:
        own = quantisation(attributes.scale, attributes.zero_point, INTEGER_FORMATS.get(type_.dtype, DEFAULT_FORMAT))
        if type_.quantisation not in (None, own):
            raise RuleError("E0315", f"{{0}} is quantised by {type_.quantisation}, not by {own}", about=(0,))
        return attributes
    if type_.quantisation is None:
        raise RuleError("E0315", "{0} isn't quantised", about=(0,), help="only the result of quantize can be dequantized")
    return DequantizeAttributes(type_.quantisation.scale, type_.quantisation.zero_point)


def infer(attributes: DequantizeAttributes, types: Types) -> TensorType:
    """An f32 value of which nothing more is known."""
    explicit(attributes, types[0])
    if types[0].dtype not in INTEGER_FORMATS:
        raise RuleError("E0305", f"expected {listed([*INTEGER_FORMATS], 'or')} values, found {types[0].brief}", about=(0,))
    return f32(*types[0].shape)


def reference(attributes: DequantizeAttributes, operands: Arrays) -> Array:
    """Needs attributes with a scale (see `explicit`). Raises `RuleError` without."""
    if attributes.scale is None:
        raise RuleError("E0315", "{0} isn't quantised", about=(0,))
    return dequantise(operands[0], attributes.scale, attributes.zero_point)


_I8 = Quantisation(0.5, -3)


def onnx(g: Call) -> str:
    held = explicit(g.attributes, g.types[0])
    assert held.scale is not None
    zero = np.asarray(held.zero_point, g.types[0].numpy)
    return g.node("DequantizeLinear", *g.operands, g.number(held.scale, "scale"), g.constant(zero, "zero_point"))


OP = OpDef(
    name="dequantize",
    summary="integers as real values: scale * (q - zero_point)",
    documentation=(
        "The scale and the zero point are those that `quantize` gave. The operators after it compute in float32 again. ONNX: "
        "DequantizeLinear."
    ),
    operands=(Operand("q"),),
    attributes=DequantizeAttributes,
    infer=infer,
    reference=reference,
    legalisation=Boundary(into_integers=False),
    facts=of_one_value(monotone=always, keeps_parameters=False),
    gradient=Missing("its operand is an integer"),
    floats=Ieee(),
    onnx=Form(onnx, Layout.ANY),
    examples=(
        Example("one whole tile", DequantizeAttributes(0.5, -3), (TensorType("i8", (8, 256), quantisation=_I8),)),
        Example("ragged", DequantizeAttributes(0.5, -3), (TensorType("i8", (3, 5, 257), quantisation=_I8),)),
    ),
)
