"""Families of operators: `OpDef` with the fields that all of a family have alike. An operator gives the others, or its own in their place.

The reductions and the losses have families in `reductions.py` and `losses.py`, and what only training makes in `tpucc.training.operators`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import PLAIN, Arithmetic
from tpucc.ir import NoAttributes
from tpucc.ops.batch import element_by_element
from tpucc.ops.facts import Predicate, always, given, of_one_value, of_two_values, whole
from tpucc.ops.gradient import LEAF
from tpucc.ops.opdef import Arithmetic as VectorFunction
from tpucc.ops.opdef import Array, Arrays, Defined, Floats, Ieee, OpDef, Operand, Table
from tpucc.ops.rules import BROADCAST, UNARY, binary, unary

function_of_one_value = partial(OpDef, operands=(Operand("x"),), attributes=NoAttributes, infer=unary, examples=UNARY)
"""A function of one value, element by element."""
function_of_two_values = partial(OpDef, operands=(Operand("a"), Operand("b")), attributes=NoAttributes, infer=binary, examples=BROADCAST)
"""A function of two values, element by element."""
host_function_of_two_values = partial(function_of_two_values, facts=whole(batch=element_by_element), floats=Ieee())
"""A function of two values that the device lacks, of single IEEE 754 operations."""
clamp = partial(function_of_one_value, facts=of_one_value(monotone=always, keeps_parameters=True), floats=Ieee())
"""A clamp to bounds: its operator gives them, and the reference."""
leaf = partial(OpDef, operands=(), facts=given(), gradient=LEAF, floats=Ieee())
"""A value that is there from the start."""


def in_plain(formula: Callable[[Any, Arrays, Arithmetic], Array]) -> Callable[[Any, Arrays], Array]:
    """The reference of an operator that is `Defined` by a formula: the formula in `PLAIN` arithmetic."""

    def reference(attributes: Any, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            return formula(attributes, operands, PLAIN)

    return reference


def table(
    function: Callable[[Any, Array], Array],
    *,
    monotone: Predicate,
    singular: tuple[int, ...] = (),
    floats: Floats = Ieee(),  # noqa: B008 - a frozen value
    **others: Any,
) -> OpDef[Any]:
    """A function of one value that the device has as a table of 256 entries.

    One formula gives the table, in float64, and the reference, in the precision of its operand: Python's numbers take the array's precision
    (NumPy's rule since 2.0). It consists of single IEEE 754 operations, unless `floats` says otherwise.
    """
    facts = of_one_value(monotone=monotone, keeps_parameters=False, singular=singular)

    def reference(attributes: Any, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(attributes, operands[0]))

    made: dict[str, Any] = {"legalisation": Table(function), **others}
    return function_of_one_value(reference=reference, facts=facts, floats=floats, **made)


def formula_table(formula: Callable[[Any, Array, Arithmetic], Array], **others: Any) -> OpDef[Any]:
    """A `table` whose formula takes an exponential, a logarithm or the like from an arithmetic."""
    floats = Defined(lambda attributes, operands, arithmetic: formula(attributes, operands[0], arithmetic))
    return table(lambda attributes, x: formula(attributes, x, PLAIN), floats=floats, **others)


def vector_function(ufunc: np.ufunc, *, commutative: Predicate, signs: tuple[int, ...], **others: Any) -> OpDef[NoAttributes]:
    """A function of two values that the vector unit has, and takes an activation: NumPy's `ufunc`, whose name is the unit's, too."""
    return function_of_two_values(
        reference=lambda _, operands: np.asarray(ufunc(*operands)),
        legalisation=VectorFunction(lambda _: ufunc.__name__),
        facts=of_two_values(commutative=commutative, signs=signs, fuses_into="arithmetic"),
        floats=Ieee(lambda _: ufunc),
        **others,
    )
