"""minimum: the smaller of two values, element by element."""

from __future__ import annotations

import numpy as np

from tpucc.ir import NoAttributes
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import whole
from tpucc.ops.families import function_of_two_values
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import of_elements
from tpucc.ops.opdef import Array, Arrays, Ieee, OnHost


def reference(_: NoAttributes, operands: Arrays) -> Array:
    """`a` of two equal values, so that it is defined which of 0 and -0 comes out; NaN if one of them is."""
    a, b = operands
    return np.asarray(np.where((a <= b) | np.isnan(a), a, b))


def gradient(g: Backward) -> Gradients:
    """da = dy where a <= b, else 0; db = dy elsewhere. A tie, which is a kink, goes to a. Each is summed over repeated axes."""
    a, b = g.operands
    of_a = a <= b
    return of_a.call("where", g.dy, 0.0).summed_to(a.shape), of_a.call("where", 0.0, g.dy).summed_to(b.shape)


OP = function_of_two_values(
    name="minimum",
    summary="the smaller of a and b, element by element",
    documentation="NumPy's broadcasting; of one tensor's values, min takes the smallest. NumPy: minimum. ONNX: Min.",
    reference=reference,
    legalisation=OnHost("the device compares no values"),
    facts=whole(batch=element_by_element),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=of_elements("Min"),
)
