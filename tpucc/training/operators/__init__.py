"""Operators that only training makes: one a file, found by `tpucc.ops` beside its own, and with the families that they share.

No source calls them. They are made of the gradients of other operators, of weights that change, and of what several cores do together.
"""

from __future__ import annotations

from functools import partial

from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import NoForm
from tpucc.ops.opdef import Ieee, OpDef

TRAINED = NoForm("training makes it, and an exported model computes results")
"""An operator of training has no ONNX form."""
training_operator = partial(OpDef, onnx=TRAINED, floats=Ieee())
"""An operator that only training makes."""
gradient_operator = partial(training_operator, gradient=Missing("training differentiates once"))
"""An operator that the gradient of another one is made of."""
