"""Losses: what the operators share that say by one number how wrong a model is. Each is the mean over everything that it compares."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from tpucc.ir import NoAttributes, Range, TensorType, f32
from tpucc.ops.batch import AVERAGED, Case, Division, MixedError, aligned
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Backward, Value
from tpucc.ops.one_hot import require_labels
from tpucc.ops.onnx_form import Call
from tpucc.ops.opdef import Array, Example, OnHost, OpDef, RuleError, Types
from tpucc.ops.rules import require_f32

ON_HOST = OnHost("a loss is part of training, for which the device has no arithmetic")
UNIT = Range(0.0, 1.0)


def labelled(range_: Range) -> tuple[Example[NoAttributes], ...]:
    """The examples of losses of labels; `range_` is that of the values."""

    def example(title: str, *shape: int) -> Example[NoAttributes]:
        return Example(title, NoAttributes(), (f32(*shape).with_range(range_), TensorType("i32", shape[:-1])))

    return example("one whole tile", 8, 256), example("ragged", 3, 5, 7), example("of one item", 9)


def pairs(range_: Range | None = None) -> tuple[Example[NoAttributes], ...]:
    """The examples of losses of two values."""

    def example(title: str, *shape: int) -> Example[NoAttributes]:
        type_ = f32(*shape).with_range(range_) if range_ else f32(*shape)
        return Example(title, NoAttributes(), (type_, type_))

    return example("one whole tile", 8, 256), example("ragged", 3, 5, 7), example("a scalar")


def infer_labelled(_: NoAttributes, types: Types) -> TensorType:
    """`f32[..., C]` and the number of a class in `i32[...]` give `f32[]`."""
    values, label = types
    require_f32([values])
    if values.rank == 0:
        raise RuleError("E0303", "{0} is a scalar: it has no classes", about=(0,), help="the last axis are the classes")
    if label.dtype != "i32":
        mend = "declare the labels as i32[...]: the number of a class for each item"
        if label.shape == values.shape and values.shape[-1] > 1:
            mend = "argmax({1}) makes the number of a class of each row; mean_squared_error({0}, {1}) compares values"
        elif label.shape == values.shape:
            mend = "binary_cross_entropy({0}, {1}) is for labels of 0 and 1, mean_squared_error({0}, {1}) for values"
        raise RuleError("E0305", f"expected i32 labels, found {label.brief}", about=(1,), help=mend)
    if label.shape != values.shape[:-1]:
        wanted = TensorType("i32", values.shape[:-1]).brief
        raise RuleError("E0302", f"expected one label for each row, {wanted}", about=(0, 1), help=f"declare {{1}} as {wanted}")
    return f32()


def infer_pair(_: NoAttributes, types: Types) -> TensorType:
    """Two values of one shape give `f32[]`."""
    require_f32(types)
    if types[0].shape != types[1].shape:
        raise RuleError("E0302", "a loss compares values of one shape", about=(0, 1), help="it repeats none: reshape one of them")
    return f32()


def at_labels(values: Array, label: Array, op: str) -> Array:
    """The value of each row that its label names. Raises `InputError` (E0454)."""
    require_labels(label, values.shape[-1], op)
    return np.asarray(values.take(_firsts(label.shape, values.shape[-1]) + label))


@lru_cache
def _firsts(shape: tuple[int, ...], classes: int) -> Array:
    """The place of the first class of each label."""
    return np.arange(0, math.prod(shape) * classes, classes).reshape(shape)


def hot(g: Backward) -> Value:
    """1 at the places of the labels, 0 elsewhere."""
    values, label = g.operands
    return label.call("one_hot", n=values.shape[-1])


def onnx_items(g: Call, values: str) -> tuple[str, str]:
    """Values [items, classes] and labels [items], as ONNX's losses take them."""
    rank, columns = g.types[0].rank, g.types[0].columns
    return (values, g.operands[1]) if rank == 2 else (g.reshaped(values, -1, columns), g.reshaped(g.operands[1], -1))


def share(g: Backward, items: Value) -> Value:
    """What one of the `items` of which the loss is the mean has of its gradient: dy / n."""
    return g.dy / float(items.type.size)


def of_labels(case: Case) -> Division:
    """The batch lies at one place in the values and their labels, and not along the classes."""
    batch = case.common(case.divided)
    if batch.axis == case.operands[0].type.rank - 1:
        raise MixedError(f"{case.node.op} takes the batch for the classes")
    return Division(AVERAGED, {index: batch for index, where in enumerate(case.batches) if where is None})


def of_pairs(case: Case) -> Division:
    """The batch lies at one place in both values."""
    return replace(aligned(case, (0, 1)), result=AVERAGED)


loss_of_labels = partial(OpDef, attributes=NoAttributes, infer=infer_labelled, legalisation=ON_HOST, facts=whole(batch=of_labels))
"""The family of losses of values and labels."""
loss_of_two_values = partial(OpDef, attributes=NoAttributes, infer=infer_pair, legalisation=ON_HOST, facts=whole(batch=of_pairs))
"""The family of losses of two values."""
