"""Comparisons: what `greater`, `less`, `equal` and the like share, which give 1.0 where the relation holds, 0.0 where it doesn't; and what
`maximum` and `minimum` share, which choose by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.families import host_function_of_two_values
from tpucc.ops.gradient import NO_GRADIENT, Backward, Gradients, Rule
from tpucc.ops.onnx_form import Call, Form, Layout, of_elements
from tpucc.ops.opdef import Array, Arrays, OnHost, OpDef

ON_HOST = OnHost("the device compares no values")


def comparison(name: str, symbol: str, function: Callable[[Array, Array], Array], *onnx: str) -> OpDef[NoAttributes]:
    """The operator `name` of a relation that NumPy has as `function`. With NaN only `!=` holds. Of the ONNX operators the first has the two
    operands, and each other one the result of the one before it."""
    first, *then = onnx

    def form(g: Call) -> str:
        return g.nodes.real(reduce(lambda made, op: g.node(op, made), then, g.node(first, *g.operands)))

    return host_function_of_two_values(
        name=name,
        summary=f"1.0 where a {symbol} b, else 0.0, element by element",
        documentation=(
            "NumPy's broadcasting. The result is f32, a mask for `where` or a factor. Its gradient is 0. "
            f"NumPy: {name}. ONNX: {', then '.join(onnx)}."
        ),
        reference=lambda _, operands: np.asarray(function(*operands)).astype(operands[0].dtype),
        legalisation=ON_HOST,
        gradient=NO_GRADIENT,
        onnx=Form(form, Layout.ANY),
    )


def chosen(name: str, comparative: str, of: str, superlative: str, is_first: np.ufunc, **own: Any) -> OpDef[NoAttributes]:
    """The operator `name`: a where `is_first` holds for a and b, else b. Of one tensor's values, `of` takes the `superlative`.
    `own` are fields in the place of the family's."""

    def reference(_: NoAttributes, operands: Arrays) -> Array:
        """`a` of two equal values, so that it is defined which of 0 and -0 comes out; NaN if one of them is."""
        a, b = operands
        return np.asarray(np.where(is_first(a, b) | np.isnan(a), a, b))

    def gradient(g: Backward) -> Gradients:
        """da = dy where a is taken, else 0; db = dy elsewhere. A tie, which is a kink, goes to a. Each is summed over repeated axes."""
        a, b = g.operands
        of_a = a.call(is_first.__name__, b)
        return of_a.call("where", g.dy, 0.0).summed_to(a.shape), of_a.call("where", 0.0, g.dy).summed_to(b.shape)

    onnx = of.capitalize()
    return host_function_of_two_values(
        name=name,
        summary=f"the {comparative} of a and b, element by element",
        documentation=f"NumPy's broadcasting; of one tensor's values, {of} takes the {superlative}. NumPy: {name}. ONNX: {onnx}.",
        reference=reference,
        gradient=Rule(gradient),
        onnx=of_elements(onnx),
        **{"legalisation": ON_HOST, **own},
    )
