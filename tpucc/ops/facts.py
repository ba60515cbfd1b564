"""Facts: what passes, placement, the division among cores, the runtime and the pictures ask of an operator.

A pass asks for a fact and never for a name, so that an operator that is added is treated at once as others are of which the same is true.
`Facts` has no defaults: a forgotten fact fails when its file is loaded. The functions below it give the facts of whole families of
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tpucc.ops import batch as rules
from tpucc.ops.axis import Axis
from tpucc.ops.batch import BatchRule
from tpucc.ops.parts import PartRule, Shapes, element_by_element, inseparable
from tpucc.ops.parts import product as rows_and_columns

Predicate = Callable[[Any], bool]
"""A fact that the attributes decide."""
Terms = Callable[[Shapes], int]
"""A count of the terms of a sum, from the operands' shapes."""


class Patches(NamedTuple):
    """Windows of images as rows: `lines` of `pixels` neighbours each, every pixel with `channels` values."""

    rows: int
    lines: int
    pixels: int
    channels: int


class Product(NamedTuple):
    """So many `times` the product of a matrix [rows, depth] with one [depth, columns], each time of others. One side may be `patches`."""

    rows: int
    depth: int
    columns: int
    times: int = 1
    patches: Patches | None = None


Products = Callable[[Any, Shapes], Sequence[Product]]
"""The products of matrices that compute a result, from the attributes and the operands' shapes; one after the other."""
WindowRule = Callable[[Any, Shapes], tuple[Axis, Axis]]
"""The two spatial axes of an operator on images, from its attributes and its operands' shapes."""


class Values(Enum):
    """Where the values of a result come from."""

    GIVEN = "from nowhere: there are no operands"
    VIEWED = "those of the operand, in the same order and another shape"
    PICKED = "values of the one operand, in another order, or some of them"
    JOINED = "the values of several operands, side by side"
    PADDED = "the values of the operand, and zeros around them"
    COMPUTED = "computed from those of the operands"


COPIED = frozenset({Values.JOINED, Values.PADDED})
"""The device makes the result by copying; views and picked values are only walked in another way."""
MADE = COPIED | {Values.COMPUTED}
"""The device makes a value that wasn't there."""
UNCHANGED = frozenset({Values.VIEWED, Values.PICKED, Values.JOINED})
"""Each value of the result is one of an operand, so that any function of single values may come before or after."""
MOVED = UNCHANGED | COPIED
"""Nothing is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about an operator that passes ask for.

    - `values`: where the values of its result come from.
    - `elementwise`: each value depends on the values at its place in the operands, by NumPy's broadcasting, and any shape is allowed.
    - `monotone`: it is a function of one value that never falls when its operand rises. The reference never does; what a machine for floats
      computes may, in the last bits.
    - `commutative`: its two operands may be exchanged.
    - `signs`: if the result is a sum, the sign with which each operand is added.
    - `part`: the parts of the operands from which a part of the result is computed.
    - `windows`: the axes of an image over which its windows move.
    - `batch`: the axis of the batch in the result; None without operands.
    - `keeps_parameters`: the result has the scale and zero point of its operand; of an element-wise operator it has them on the device.
    - `terms`: how many products are added up for each value of the result, from the operands' shapes; 1 if none are.
    - `products`: the products of matrices that a machine for floats computes the result with; empty if it needs none.
    - `singular`: the operands with finite values at which the result isn't finite: a divisor, and what a root or a logarithm is taken of.
    - `fuses_into`: the operator that is this one with an activation, and perhaps a bias, after it; empty if there is none.
    """

    values: Values
    elementwise: bool
    monotone: Predicate
    commutative: Predicate
    signs: tuple[int, ...]
    part: PartRule
    windows: WindowRule | None
    batch: BatchRule | None
    keeps_parameters: bool
    terms: Terms
    products: Products
    singular: tuple[int, ...]
    fuses_into: str


def selects(facts: Facts) -> bool:
    """Whether each value of the result is one of the one operand that isn't numbers of rows: moves, the largest of a window, rows."""
    return facts.keeps_parameters and not facts.elementwise


def keeps_values(facts: Facts) -> bool:
    """Whether the result has values of the operands and no others."""
    return facts.values is Values.JOINED or selects(facts)


def always(_: object) -> bool:
    return True


def never(_: object) -> bool:
    return False


def one_term(_: Shapes) -> int:
    return 1


def no_products(_: object, shapes: Shapes) -> Sequence[Product]:
    return ()


_PLAIN = Facts(
    values=Values.COMPUTED,
    elementwise=False,
    monotone=never,
    commutative=never,
    signs=(),
    part=inseparable,
    windows=None,
    batch=None,
    keeps_parameters=False,
    terms=one_term,
    products=no_products,
    singular=(),
    fuses_into="",
)
"""Nothing special is true: where the families begin. Each says what is true of it beside, and asks its operators for the rest."""


def given() -> Facts:
    """A value that is there from the start."""
    return replace(_PLAIN, values=Values.GIVEN)


def of_one_value(*, monotone: Predicate, keeps_parameters: bool, singular: tuple[int, ...] = ()) -> Facts:
    """A function of one value, element by element. A clamp keeps the parameters: the values that it lets through are as they were."""
    made = replace(_PLAIN, elementwise=True, part=element_by_element, batch=rules.each)
    return replace(made, monotone=monotone, keeps_parameters=keeps_parameters, singular=singular)


def of_two_values(*, commutative: Predicate, signs: tuple[int, ...], fuses_into: str) -> Facts:
    """A function of two values, element by element."""
    made = replace(_PLAIN, elementwise=True, part=element_by_element, batch=rules.element_by_element)
    return replace(made, commutative=commutative, signs=signs, fuses_into=fuses_into)


def moving(values: Values, *, part: PartRule, batch: BatchRule, keeps_parameters: bool) -> Facts:
    """Values in another shape, or in other places."""
    return replace(_PLAIN, values=values, part=part, batch=batch, keeps_parameters=keeps_parameters)


def table_rows(*, batch: BatchRule) -> Facts:
    """Facts of an operator of the host that takes rows of its last operand."""
    return replace(_PLAIN, batch=batch, keeps_parameters=True)


def whole(*, batch: BatchRule | None, singular: tuple[int, ...] = (), products: Products = no_products) -> Facts:
    """Facts of an operator that isn't computed in parts, because the device lacks it, or of a name that isn't an operator's."""
    return replace(_PLAIN, batch=batch, singular=singular, products=products)


def product(*, fuses_into: str) -> Facts:
    """Rows times matrices: `[..., M, K] @ [..., K, N]`."""
    made = replace(_PLAIN, part=rows_and_columns, batch=rules.product, terms=lambda shapes: shapes[1][-2])
    return replace(made, fuses_into=fuses_into, products=_rows_times_matrices)


def _rows_times_matrices(_: object, shapes: Shapes) -> Sequence[Product]:
    """All rows at once where the right side is one matrix; else a product for each pair of matrices."""
    a, b = shapes[:2]
    if len(b) == 2:
        return (Product(prod(a[:-1]), b[0], b[1]),)
    return (Product(prod(a[-2:-1]), b[-2], b[-1], prod(np.broadcast_shapes(a[:-2], b[:-2]))),)


def windowed(
    windows: WindowRule, *, part: PartRule, keeps_parameters: bool, terms: Terms, fuses_into: str, products: Products = no_products
) -> Facts:
    """Facts of operators that compute each value from the pixels in a window."""
    made = replace(_PLAIN, windows=windows, part=part, batch=rules.images, products=products)
    return replace(made, keeps_parameters=keeps_parameters, terms=terms, fuses_into=fuses_into)
