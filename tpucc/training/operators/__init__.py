"""Operators that only training makes: one a file, found by `tpucc.ops` beside its own, and with the families that they share.

No source calls them. They are made of the gradients of other operators, of weights that change, and of what several cores do together.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tpucc.ops.batch import Case, Division, MixedError, images
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import NoForm
from tpucc.ops.opdef import Ieee, OpDef

TRAINED = NoForm("training makes it, and an exported model computes results")
"""An operator of training has no ONNX form."""
training_operator = partial(OpDef, onnx=TRAINED, floats=Ieee())
"""An operator that only training makes."""
gradient_operator = partial(training_operator, gradient=Missing("training differentiates once"))
"""An operator that the gradient of another one is made of."""


def sized_images(case: Case) -> Division:
    """As `images`, for operators whose attribute `shape` is the result's."""
    division = images(case)
    return replace(division, attributes=replace(case.attributes, shape=case.part(case.node.type.shape, division.batch)))


def added_up(case: Case) -> Division:
    """Never: every value of the result depends on all items."""
    raise MixedError(f"{case.node.op} adds up over the batch")
