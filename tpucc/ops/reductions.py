"""Reductions: what `sum`, `mean`, `max` and `min` share. They make one value of all that stand along some axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tpucc.ir import TensorType, f32
from tpucc.ops.batch import AVERAGED, Batch, Case, Division, MixedError
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Gradients, Rule, Value
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_axis, require_f32, require_flag, require_integers


@dataclass(frozen=True, slots=True)
class ReductionAttributes:
    """`axis`: one axis, or a list of them; negative ones count from the end, and without any all axes are meant.

    `keepdims`: whether these axes stay, with size 1.
    """

    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False


EXAMPLES = (
    Example("one whole tile", ReductionAttributes(), (f32(8, 256),)),
    Example("ragged, along the last axis", ReductionAttributes(-1), (f32(3, 5, 57),)),
    Example("along two axes, which stay", ReductionAttributes((0, 2), True), (f32(3, 5, 7),)),
    Example("along the first axis", ReductionAttributes(0), (f32(5, 7),)),
    Example("of a scalar", ReductionAttributes(), (f32(),)),
)


def axes_of(attributes: ReductionAttributes, rank: int) -> tuple[int, ...]:
    """The axes that are reduced, numbered from 0, in ascending order. Raises `RuleError`."""
    if attributes.axis is None:
        return tuple(range(rank))
    found = [require_axis(axis, rank) for axis in require_integers(attributes.axis, "axis")]
    if len(set(found)) < len(found):
        raise RuleError("E0304", "an axis is named twice", about=("axis",))
    return tuple(sorted(found))


def infer(attributes: ReductionAttributes, types: Types) -> TensorType:
    """The operand's shape without the reduced axes, or with size 1 in their places."""
    require_f32(types)
    axes = axes_of(attributes, types[0].rank)
    return f32(*_shape(types[0].shape, axes, require_flag(attributes.keepdims, "keepdims")))


def _shape(shape: tuple[int, ...], axes: tuple[int, ...], kept: bool) -> tuple[int, ...]:
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if kept or axis not in axes)


def count(attributes: ReductionAttributes, shape: tuple[int, ...]) -> int:
    """How many values become one."""
    return math.prod(shape[axis] for axis in axes_of(attributes, len(shape)))


def as_result(attributes: ReductionAttributes, x: Array, values: Array) -> Array:
    """One value for each place that is left of `x`, in the result's shape."""
    return values.reshape(_shape(x.shape, axes_of(attributes, x.ndim), attributes.keepdims))


def lines(attributes: ReductionAttributes, x: Array) -> Array:
    """`x` with the reduced axes last and made one: each line of it becomes one value."""
    kept, axes = _order(attributes, x.ndim)
    return x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)


def _order(attributes: ReductionAttributes, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = axes_of(attributes, rank)
    return tuple(axis for axis in range(rank) if axis not in axes), axes


def reduced(g: Call, op: str) -> str:
    """The ONNX form: the reduction `op`. Of a scalar there is nothing to reduce."""
    axes = axes_of(g.attributes, g.types[0].rank)
    if not axes:
        return g.node("Identity", *g.operands)
    return g.node(op, *g.operands, g.integers(axes, "axes"), keepdims=int(g.attributes.keepdims))


def spread(g: Backward, value: Value) -> Value:
    """A value of the result's shape, with size 1 in the places of the reduced axes: it broadcasts to the operand's shape."""
    x = g.operands[0]
    return value.reshape(*_shape(x.shape, axes_of(g.attributes, x.type.rank), kept=True))


def to_first_largest(g: Backward, x: Value) -> Value:
    """`dy` at the first of the largest values of `x` along the reduced axes (the last axis is the fastest), 0 at all others."""
    kept, axes = _order(g.attributes, x.type.rank)
    order = (*kept, *axes)
    turned = x.transposed(*order)
    places = turned.reshape(*(x.shape[axis] for axis in kept), count(g.attributes, x.shape)).call("argmax", axis=-1)
    mask = places.call("one_hot", n=count(g.attributes, x.shape)).reshape(*turned.shape)
    return mask.transposed(*map(order.index, range(x.type.rank))).call("where", spread(g, g.dy), 0.0)


def beside(case: Case, mixes: str) -> Division:
    """The batch in the result, when it lies along none of the reduced axes. Raises `MixedError`: "sum `mixes` the batch"."""
    batch = case.only(0)
    axes = axes_of(case.attributes, case.operands[0].type.rank)
    if batch.axis in axes:
        raise MixedError(f"{case.node.op} {mixes} the batch")
    return Division(Batch(batch.axis - (0 if case.attributes.keepdims else sum(axis < batch.axis for axis in axes)), batch.inner))


def averaged(case: Case) -> Division:
    """A mean along the batch is one over its items; along other axes each item has its own."""
    if case.only(0).axis in axes_of(case.attributes, case.operands[0].type.rank):
        return Division(AVERAGED)
    return beside(case, "averages over")


reduction = partial(OpDef, operands=(Operand("x"),), attributes=ReductionAttributes, infer=infer, examples=EXAMPLES)
"""The family: an operator gives the other fields."""


def extreme(name: str, superlative: str, pairwise: str, comparative: str, place: Callable[..., Array]) -> OpDef[ReductionAttributes]:
    """The reduction to the largest or smallest of the values; `pairwise` is the operator that chooses from two, `place` NumPy's function
    of the first place. Ties are a kink of the gradient: the first one is our choice, as it is argmax's."""

    def reference(attributes: ReductionAttributes, operands: Arrays) -> Array:
        """The first of equal values, so that it is defined which of 0 and -0 it is; NaN if one of them is."""
        rows = lines(attributes, operands[0])
        return as_result(attributes, operands[0], np.take_along_axis(rows, np.expand_dims(place(rows, axis=-1), -1), -1))

    def gradient(g: Backward) -> Gradients:
        """dx = dy at the first of the extreme values, 0 at all others."""
        x = g.operands[0]
        return (to_first_largest(g, x if place is np.argmax else -x),)

    onnx = f"Reduce{name.capitalize()}"
    return reduction(
        name=name,
        summary=f"the {superlative} of the values along some axes, or of all of them",
        documentation=(
            f"`{name}(x)` is a scalar; `{name}(x, axis=-1)` takes the {superlative} value of each row. Of two tensors, {pairwise} takes "
            f"the {comparative}, element by element. NumPy: {name}. ONNX: {onnx} (there keepdims is 1 unless said otherwise). TensorFlow: "
            f"reduce_{name}."
        ),
        reference=reference,
        legalisation=OnHost("the device compares no values with their neighbours"),
        facts=whole(batch=lambda case: beside(case, f"takes the {superlative} value of")),
        gradient=Rule(gradient),
        floats=Ieee(),
        onnx=Form(lambda g: reduced(g, onnx)),
    )
