"""sum: the values along some axes, or all of them, added up."""

from __future__ import annotations

from collections.abc import Callable

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Defined, OnHost
from tpucc.ops.parts import Shapes
from tpucc.ops.reductions import ReductionAttributes, as_result, axes_of, beside, reduced, reduction, spread


def defined(attributes: ReductionAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    return prepared(attributes, [operands[0].shape], arithmetic)(operands[0])


def prepared(attributes: ReductionAttributes, shapes: Shapes, arithmetic: Arithmetic) -> Callable[[Array], Array]:
    axes = axes_of(attributes, len(shapes[0]))
    if attributes.keepdims:
        return lambda x: as_result(attributes, x, arithmetic.sum(x, axes))
    return lambda x: arithmetic.sum(x, axes)


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy, repeated along the axes that were summed over: each value has the factor 1."""
    return (spread(g, g.dy).repeated_to(g.operands[0].shape),)
    # lab 10 end


OP = reduction(
    name="sum",
    summary="the values along some axes, or all of them, added up",
    documentation=(
        "`sum(x)` is a scalar, `sum(x, axis=-1)` adds up each row, and `sum(x, axis=[0, 1], keepdims=True)` leaves both axes with size 1. "
        "NumPy: sum. ONNX: ReduceSum (there keepdims is 1 unless said otherwise). TensorFlow: reduce_sum."
    ),
    reference=in_plain(defined),
    legalisation=OnHost("the device has no sum along a row"),
    facts=whole(batch=lambda case: beside(case, "adds up over")),
    gradient=Rule(gradient),
    floats=Defined(defined, prepared),
    onnx=Form(lambda g: reduced(g, "ReduceSum")),
)
