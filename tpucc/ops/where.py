"""where: one of two values, as a mask says, element by element."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes, TensorType, f32
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form, Layout
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, Types
from tpucc.ops.rules import broadcast, require_f32


def infer(_: NoAttributes, types: Types) -> TensorType:
    """All three broadcast as NumPy's do."""
    require_f32(types)
    mask, a, b = (type_.shape for type_ in types)
    return f32(*broadcast(mask, broadcast(a, b, (1, 2)), (0, 1, 2)))


def reference(_: NoAttributes, operands: Arrays) -> Array:
    mask, a, b = operands
    return np.where(mask != 0, a, b)


def gradient(g: Backward) -> Gradients:
    """da = dy where the mask isn't 0, else 0; db = dy where it is 0. Each is summed over repeated axes; the mask has none."""
    mask, a, b = g.operands
    return None, mask.call("where", g.dy, 0.0).summed_to(a.shape), mask.call("where", 0.0, g.dy).summed_to(b.shape)


OP = OpDef(
    name="where",
    summary="a where the mask isn't 0, else b, element by element",
    documentation=(
        "The mask is f32, as comparisons give it: `where(x > 0.0, x, 0.1 * x)`. Both values are computed, and one is chosen. NumPy's "
        "broadcasting of all three. NumPy: where. ONNX: Where (of a boolean mask)."
    ),
    operands=(Operand("mask"), Operand("a"), Operand("b")),
    attributes=NoAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device chooses between no values"),
    facts=whole(batch=element_by_element),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: g.node("Where", g.nodes.boolean(g.operands[0]), *g.operands[1:]), Layout.ANY),
    examples=(
        Example("one whole tile", NoAttributes(), (f32(8, 256), f32(8, 256), f32(8, 256))),
        Example("ragged, a value a column", NoAttributes(), (f32(3, 5, 57), f32(3, 5, 57), f32(57))),
        Example("all three repeat", NoAttributes(), (f32(3, 1), f32(1, 4), f32())),
    ),
)
