"""Comparisons: what `greater`, `less`, `equal` and the like share. They give 1.0 where the relation holds, 0.0 where it doesn't."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import whole
from tpucc.ops.families import function_of_two_values
from tpucc.ops.gradient import NO_GRADIENT
from tpucc.ops.onnx_form import Call, Form, Layout
from tpucc.ops.opdef import Array, Arrays, Ieee, OnHost, OpDef


def comparison(name: str, symbol: str, function: Callable[[Array, Array], Array], *onnx: str) -> OpDef[NoAttributes]:
    """The operator `name` of a relation that NumPy has as `function`. With NaN only `!=` holds. Of the ONNX operators the first has the two
    operands, and each other one the result of the one before it."""
    first, *then = onnx

    def reference(_: NoAttributes, operands: Arrays) -> Array:
        return np.asarray(function(*operands)).astype(operands[0].dtype)

    def form(g: Call) -> str:
        return g.nodes.real(reduce(lambda made, op: g.node(op, made), then, g.node(first, *g.operands)))

    return function_of_two_values(
        name=name,
        summary=f"1.0 where a {symbol} b, else 0.0, element by element",
        documentation=(
            "NumPy's broadcasting. The result is f32, a mask for `where` or a factor. Its gradient is 0. "
            f"NumPy: {name}. ONNX: {', then '.join(onnx)}."
        ),
        reference=reference,
        legalisation=OnHost("the device compares no values"),
        facts=whole(batch=element_by_element),
        gradient=NO_GRADIENT,
        floats=Ieee(),
        onnx=Form(form, Layout.ANY),
    )
