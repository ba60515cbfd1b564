"""one_hot: numbers of classes as rows with a single 1.0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.ir import TensorType, f32
from tpucc.numerics import place_outside
from tpucc.ops.batch import each
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Rule
from tpucc.ops.onnx_form import Call, Form
from tpucc.ops.opdef import Array, Arrays, Example, Ieee, OnHost, OpDef, Operand, RuleError, Types
from tpucc.ops.rules import require_integer, require_sizes


@dataclass(frozen=True, slots=True)
class OneHotAttributes:
    """`n`: how many classes there are."""

    n: int


def infer(attributes: OneHotAttributes, types: Types) -> TensorType:
    """`i32[...]` gives `f32[..., n]`."""
    if types[0].dtype != "i32":
        mend = "the numbers of classes are i32[...]; argmax(x) gives the place of the largest value of each row"
        raise RuleError("E0305", f"expected i32 numbers of classes, found {types[0].brief}", about=(0,), help=mend)
    shape = (*types[0].shape, require_integer(attributes.n, "n", 1))
    require_sizes(shape, 0)
    return f32(*shape)


def require_labels(labels: Array, classes: int, op: str) -> None:
    """Raises `InputError` (E0454) for the first label that isn't in 0…classes - 1; negative ones don't count from the end."""
    if (first := place_outside(labels, classes)) is not None:
        place = f" at {list(first)}" if first else ""
        message = f"label {labels[first]}{place} is outside the {classes:,} classes of {op}, which count from 0 to {classes - 1:,}"
        raise InputError(Diagnostic("E0454", message))


def prepared(attributes: OneHotAttributes) -> Callable[[Array], Array]:
    """A function that raises `InputError` (E0454) for a number that is no class."""
    classes = np.arange(attributes.n, dtype=np.int32)

    def one_hot(labels: Array) -> Array:
        require_labels(labels, attributes.n, "one_hot")
        return np.equal(labels[..., np.newaxis], classes).astype(np.float32)

    return one_hot


def reference(attributes: OneHotAttributes, operands: Arrays) -> Array:
    return prepared(attributes)(operands[0])


def onnx(g: Call) -> str:
    """ONNX has no numbers without an axis here. One that is no class makes a row of zeros there, or counts from the end."""
    depth, values = g.constant(np.asarray(g.attributes.n, np.int32), "depth"), g.constant(np.asarray([0, 1], np.float32), "values")
    if g.types[0].rank:
        return g.node("OneHot", *g.operands, depth, values)
    return g.reshaped(g.node("OneHot", g.reshaped(g.operands[0], 1), depth, values), g.attributes.n)


OP = OpDef(
    name="one_hot",
    summary="numbers of classes as rows with a single 1.0",
    documentation=(
        "`i` is i32 of any shape; the result has one more axis, of `n` places, with 1.0 at the place that the number says, and 0.0 at all "
        "others. A number outside of 0…n - 1 is an error when the model runs. ONNX: OneHot. Keras: to_categorical. TensorFlow: one_hot."
    ),
    operands=(Operand("i"),),
    attributes=OneHotAttributes,
    infer=infer,
    reference=reference,
    legalisation=OnHost("the device compares no values"),
    facts=whole(batch=each),
    gradient=Rule(lambda _: (None,)),
    floats=Ieee(prepared),
    onnx=Form(onnx),
    examples=(
        Example("one whole tile", OneHotAttributes(256), (TensorType("i32", (8,)),)),
        Example("ragged", OneHotAttributes(7), (TensorType("i32", (3, 5)),)),
        Example("of one number", OneHotAttributes(9), (TensorType("i32", ()),)),
    ),
)
