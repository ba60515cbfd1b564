"""Families of operators: `OpDef` with the fields that all of a family have alike. An operator gives the others, or its own in their place.

The reductions and the losses have families in `reductions.py` and `losses.py`, and what only training makes in `tpucc.training.operators`.
"""

from __future__ import annotations

from functools import partial

from tpucc.ir import NoAttributes
from tpucc.ops.facts import given
from tpucc.ops.gradient import LEAF
from tpucc.ops.opdef import Ieee, OpDef, Operand
from tpucc.ops.rules import BROADCAST, UNARY, binary, unary

function_of_one_value = partial(OpDef, operands=(Operand("x"),), attributes=NoAttributes, infer=unary, examples=UNARY)
"""A function of one value, element by element."""
function_of_two_values = partial(OpDef, operands=(Operand("a"), Operand("b")), attributes=NoAttributes, infer=binary, examples=BROADCAST)
"""A function of two values, element by element."""
leaf = partial(OpDef, operands=(), facts=given(), gradient=LEAF, floats=Ieee())
"""A value that is there from the start."""
