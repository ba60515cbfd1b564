"""mean: the average of the values along some axes, or of all of them."""

from __future__ import annotations

import numpy as np

from tpucc.floating.arithmetic import Arithmetic
from tpucc.ops import sum as summed
from tpucc.ops.facts import whole
from tpucc.ops.families import in_plain
from tpucc.ops.gradient import Backward, Gradients, Rule
from tpucc.ops.onnx_form import Form
from tpucc.ops.opdef import Array, Arrays, Defined, OnHost
from tpucc.ops.reductions import ReductionAttributes, averaged, count, reduced, reduction, spread


def defined(attributes: ReductionAttributes, operands: Arrays, arithmetic: Arithmetic) -> Array:
    """The sum, divided by the number of its terms."""
    return np.asarray(summed.defined(attributes, operands, arithmetic) / count(attributes, operands[0].shape))


def gradient(g: Backward) -> Gradients:
    # lab 10 begin: give the gradients of the operands
    """dx = dy / n, repeated along the axes that were averaged over; n is the number of values in each mean."""
    x = g.operands[0]
    return (spread(g, g.dy / float(count(g.attributes, x.shape))).repeated_to(x.shape),)
    # lab 10 end


OP = reduction(
    name="mean",
    summary="the average of the values along some axes, or of all of them",
    documentation=(
        "`mean(x)` is a scalar, and `mean(x, axis=-1)` averages each row. In training on several cores, a mean over the batch is the mean "
        "of the cores' means. NumPy: mean. ONNX: ReduceMean (there keepdims is 1 unless said otherwise). TensorFlow: reduce_mean."
    ),
    reference=in_plain(defined),
    legalisation=OnHost("the device has no sum along a row"),
    facts=whole(batch=averaged),
    gradient=Rule(gradient),
    floats=Defined(defined),
    onnx=Form(lambda g: reduced(g, "ReduceMean")),
)
