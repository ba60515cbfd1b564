"""max: the largest of the values along some axes, or of all of them."""

from __future__ import annotations

import numpy as np

from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Ieee, OnHost
from tpucc.ops.reductions import ReductionAttributes, as_result, beside, lines, reduced, reduction, to_first_largest


def reference(attributes: ReductionAttributes, operands: Arrays) -> Array:
    """The first of the largest values, so that it is defined which of 0 and -0 it is; NaN if one of them is."""
    rows = lines(attributes, operands[0])
    places = np.expand_dims(rows.argmax(axis=-1), -1)
    return as_result(attributes, operands[0], np.take_along_axis(rows, places, -1))


def gradient(g: Backward) -> Gradients:
    """dx = dy at the first of the largest values, 0 at all others. (Ties are a kink; the first one is our choice, as argmax's is.)"""
    return (to_first_largest(g, g.operands[0]),)


OP = reduction(
    name="max",
    summary="the largest of the values along some axes, or of all of them",
    documentation=(
        "`max(x)` is a scalar; `max(x, axis=-1)` takes the largest value of each row. Of two tensors, maximum takes the larger, "
        "element by element. NumPy: max. ONNX: ReduceMax (there keepdims is 1 unless said otherwise). TensorFlow: reduce_max."
    ),
    reference=reference,
    legalisation=OnHost("the device compares no values with their neighbours"),
    facts=whole(batch=lambda case: beside(case, "takes the largest value of")),
    gradient=Rule(gradient),
    floats=Ieee(),
    onnx=Form(lambda g: reduced(g, "ReduceMax")),
)
