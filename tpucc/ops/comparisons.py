"""Families of operators that compare two values. `greater`, `equal` and the like give 1.0 where a relation holds, 0.0 where it doesn't;
`maximum` and `minimum` give one of the two values."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import whole
from tpucc.ops.families import function_of_two_values
from tpucc.ops.gradient import NO_GRADIENT, Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout, of_elements
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


def extreme_of_two(name: str, comparative: str, of_one: str, superlative: str, relation: Callable[[Any, Any], Any]) -> OpDef[NoAttributes]:
    """The operator `name` that takes the larger or smaller of two values: a where `relation(a, b)` holds, else b. `of_one` is the operator
    that takes the largest or smallest value of one tensor."""

    def reference(_: NoAttributes, operands: Arrays) -> Array:
        """`a` of two equal values, so that it is defined which of 0 and -0 comes out; NaN if one of them is."""
        a, b = operands
        return np.asarray(np.where(relation(a, b) | np.isnan(a), a, b))

    def gradient(g: Backward) -> Gradients:
        """da = dy where a is taken, else 0; db = dy elsewhere. A tie, which is a kink, goes to a. Each is summed over repeated axes."""
        a, b = g.operands
        of_a = relation(a, b)
        return of_a.call("where", g.dy, 0.0).summed_to(a.shape), of_a.call("where", 0.0, g.dy).summed_to(b.shape)

    onnx = of_one.capitalize()
    return function_of_two_values(
        name=name,
        summary=f"the {comparative} of a and b, element by element",
        documentation=f"NumPy's broadcasting; of one tensor's values, {of_one} takes the {superlative}. NumPy: {name}. ONNX: {onnx}.",
        reference=reference,
        legalisation=OnHost("the device compares no values"),
        facts=whole(batch=element_by_element),
        gradient=Rule(gradient),
        floats=Ieee(),
        onnx=of_elements(onnx),
    )
