"""Operators applied to tensors: a node of the graph, or a message about the student's own expressions where a rule doesn't hold."""

from __future__ import annotations

import math
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from tpucc.diagnostics import Span, listed
from tpucc.ir import Attributes, Constant, NoAttributes, TensorType
from tpucc.language import ast
from tpucc.language.frame import Frame, Hint
from tpucc.language.problem import LimitReached, Limits, Problem
from tpucc.language.static import require_static
from tpucc.language.values import ArgumentValue, Items, Tensor, Value, describe, has_tensor, is_number
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import RuleError
from tpucc.ops.rules import MAX_RANK
from tpucc.ops.weight import OP as weight

BINARY: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul"}
COMPARISONS: Mapping[str, str] = {
    ">": "greater",
    ">=": "greater_equal",
    "<": "less",
    "<=": "less_equal",
    "==": "equal",
    "!=": "not_equal",
}
LARGEST = float(np.finfo(np.float32).max)
TRIED = 200
"""Variables that are tried as replacements for a wrong operand."""
KINDS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "True or False",
    tuple[int, int]: "a pair of integers",
    tuple[int, int, int, int]: "4 integers",
    tuple[int, ...]: "a list of integers",
    tuple[tuple[int, int], ...]: "a list of pairs of integers",
}
"""The types of attributes that a call may give, in words."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in its place: where it is written, and the variable that it is, if it is one."""

    tensor: Tensor
    span: Span
    variable: str = ""


@dataclass(frozen=True)
class Application:
    """An operator applied: all that a message about it may need."""

    frame: Frame
    op: str
    operands: Sequence[Operand]
    attributes: Attributes
    span: Span
    places: Mapping[str, Span] = field(default_factory=dict)
    """Where the attributes are written that are."""

    @property
    def types(self) -> list[TensorType]:
        return [operand.tensor.type for operand in self.operands]

    def named(self, index: int) -> str:
        """An operand in the student's words: its expression, or its position when that is long."""
        operand = self.operands[index]
        return operand.variable or self.frame.run.excerpt(operand.span) or _ordinal(index, len(self.operands))


def applied(made: Application, hint: Hint) -> Tensor:
    """The node of an operator. Raises `Problem` for a rule that doesn't hold."""
    type_ = inferred(made)
    operands = tuple(operand.tensor.name for operand in made.operands)
    return made.frame.add(made.op, operands, made.attributes, type_, made.span, hint)


def inferred(made: Application) -> TensorType:
    """The type of an operator's result. Raises `Problem` for a rule that doesn't hold."""
    try:
        return OPS[made.op].infer(made.attributes, made.types)
    except RuleError as error:
        raise _blamed(error, made) from None


def operand(frame: Frame, value: Value, node: ast.Expression) -> Operand:
    """A value in a tensor's place; a static number becomes a scalar constant. Raises `Problem` for anything else."""
    variable = node.text if isinstance(node, ast.Name) else ""
    return Operand(value if isinstance(value, Tensor) else scalar(frame, value, node.span), node.span, variable)


def scalar(frame: Frame, value: Value, span: Span) -> Tensor:
    """A static number as a constant f32[]."""
    if not is_number(value):
        mend = "constant([[1.0, 2.0]]) makes a tensor of a list of numbers" if isinstance(value, Items) and not has_tensor(value) else ""
        raise Problem("E0324", f"expected a tensor or a number, found {describe(value)}", span, "", mend)
    if abs(value) > LARGEST:
        raise Problem("E0307", "a number beyond the range of f32", span, f"f32 reaches to about {LARGEST:.3g}")
    attributes = ConstantAttributes(Constant(np.array(value, np.float32)))
    return applied(Application(frame, "constant", (), attributes, span), ("scalar",))


def combined(frame: Frame, op: str, a: Operand, b: Operand, span: Span, hint: Hint) -> Tensor:
    """The operator that a symbol between two values stands for, as in `a + b` or `a < b`."""
    return applied(Application(frame, op, (a, b), NoAttributes(), span), hint)


def reciprocal(value: Value, span: Span) -> float:
    """1 / value, for the division of a tensor by a static number. Raises `Problem`."""
    if not is_number(value):
        raise Problem("E0217", f"a tensor can't be divided by {describe(value)}", span)
    if value == 0:
        raise Problem("E0218", "division by zero", span, "the right side is 0")
    result = 1 / value
    if not math.isfinite(result):
        raise Problem("E0307", "1 / this number is beyond the range of f32", span)
    return result


def operands(frame: Frame, given: ArgumentValue, many: bool, op: str) -> list[Operand]:
    """The operands of one parameter of an operator: one, or where it takes `many`, the tensors of a list. Raises `Problem`."""
    if not many:
        return [operand(frame, given.value, given.expression)]
    value, node = given.value, given.expression
    if not isinstance(value, Items):
        message = f"{op} takes a list of tensors, found {describe(value)}"
        raise Problem("E0324", message, node.span, "", f"write it as a list: {op}([a, b])")
    frame.run.spend(10 * len(value.values), node.span)  # as many operands, each with its place
    places = ast.parts(node, len(value.values))
    return [operand(frame, inner, place) for inner, place in zip(value.values, places, strict=True)]


def _blamed(error: RuleError, application: Application) -> Problem:
    """The message for a rule that doesn't hold."""
    names = [application.named(index) for index in range(len(application.operands))]
    message, help_ = error.named(names)
    about = [index for index in error.about if isinstance(index, int) and index < len(names)]
    span = _place(error, about, application)
    label = _types(about, application, names)
    return Problem(error.code, message, span, label, _replacement(error, about, application), help_)


def _place(error: RuleError, about: Sequence[int], application: Application) -> Span:
    attributes = [place for name in error.about if isinstance(name, str) and (place := application.places.get(name))]
    if attributes:
        return attributes[0]
    return application.operands[about[0]].span if len(about) == 1 else application.span


def _types(about: Sequence[int], application: Application, names: Sequence[str]) -> str:
    """`x is f32[64, 128] but w2 is f32[256, 10]`."""
    shown = about or range(len(names))
    facts = [f"{names[index]} is {application.operands[index].tensor.type.brief}" for index in shown[:3]]
    return f"{facts[0]} but {facts[1]}" if len(facts) == 2 and len(about) == 2 else listed(facts)


def _replacement(error: RuleError, about: Sequence[int], application: Application) -> str:
    """`did you mean w1, which is f32[128, 256]?`: another variable in sight with which the rule would hold."""
    from difflib import SequenceMatcher  # imported only when something is wrong

    for index in reversed(about):
        wanted = application.operands[index].variable
        if wanted and (fitting := dict(_fitting(index, application))):
            whole = {name: type_ for name, type_ in fitting.items() if _has_sizes(type_, index, application)}
            name = max(whole or fitting, key=lambda name: SequenceMatcher(None, wanted, name).ratio())
            return f"did you mean {name}, which is {fitting[name].brief}?"
    return ""


def _fitting(index: int, application: Application) -> Iterator[tuple[str, TensorType]]:
    """Variables of the same kind (weights for weights) that fit in the place of an operand."""
    used = {operand.tensor.name for operand in application.operands}
    kind = weight.made(application.operands[index].tensor)
    tensors = [(name, value) for name, value in application.frame.variables.items() if isinstance(value, Tensor)]
    for name, value in tensors[-TRIED:]:
        if value.name not in used and weight.made(value) == kind and _fits(index, value.type, application):
            yield name, value.type


def _has_sizes(type_: TensorType, index: int, application: Application) -> bool:
    """Whether no size of the type is repeated to make it fit: sizes of 1 go with everything, so that they are hardly what was meant."""
    others = [operand.tensor.type.shape for place, operand in enumerate(application.operands) if place != index]
    return all(one == other or one != 1 for shape in others for one, other in zip(reversed(type_.shape), reversed(shape), strict=False))


def _fits(index: int, type_: TensorType, application: Application) -> bool:
    types = application.types
    types[index] = type_
    with suppress(RuleError):
        OPS[application.op].infer(application.attributes, types)
        return True
    return False


def _ordinal(index: int, count: int) -> str:
    if count == 1:
        return "the operand"
    if count == 2:
        return ("the left operand", "the right operand")[index]
    return f"operand {index + 1}"


@cache
def declared(attributes: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    """The fields of an attributes class: name, type, and whether a call must give them."""
    hints = get_type_hints(attributes)
    required = {field.name: field.default is MISSING and field.default_factory is MISSING for field in fields(attributes)}
    return tuple((name, hints[name], needed) for name, needed in required.items())


def converted(name: str, value: Value, annotation: Any, span: Span, limits: Limits) -> object:
    """A static value as the attribute `name` wants it; in place of a list of integers, a lone one will do. Raises `Problem`."""
    require_static(value, name, span)
    if annotation is Constant:
        return _array(name, value, span, limits)
    try:
        if annotation == tuple[int, ...] and not isinstance(value, Items):
            return (msgspec.convert(value, int),)
        return msgspec.convert(_plain(value), annotation)
    except msgspec.ValidationError:
        kinds = [KINDS[choice] for choice in choices(annotation)]
        raise Problem("E0306", f"{name} must be {listed(kinds, 'or')}, found {describe(value)}", span) from None


def _plain(value: Value) -> object:
    return tuple(map(_plain, value.values)) if isinstance(value, Items) else value


def choices(annotation: Any) -> tuple[Any, ...]:
    """The types that a value may have, without None."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return tuple(choice for choice in get_args(annotation) if choice is not types.NoneType) if is_union else (annotation,)


def _array(name: str, value: Value, span: Span, limits: Limits) -> Constant:
    """Nested lists of numbers as an f32 array. Raises `Problem` when they are ragged or hold anything else."""
    shape = _shape(value)
    if len(shape) > MAX_RANK:
        raise Problem("E0303", f"a tensor has at most {MAX_RANK} dimensions; these lists are {len(shape)} deep", span)
    leaves = list(_leaves(name, value, shape, span))
    if len(leaves) > limits.static_elements:
        raise LimitReached("E0607", f"a constant of more than {limits.static_elements:,} elements", span)
    with np.errstate(over="ignore"):
        data = np.array(leaves, np.float64).astype(np.float32).reshape(shape)
    if not np.isfinite(data).all():
        raise Problem("E0307", "a number beyond the range of f32", span)
    return Constant(data)


def _shape(value: Value) -> tuple[int, ...]:
    """The sizes of nested lists, taken from the first of each level."""
    return (len(value.values), *(_shape(value.values[0]) if value.values else ())) if isinstance(value, Items) else ()


def _leaves(name: str, value: Value, shape: tuple[int, ...], span: Span) -> Iterator[int | float]:
    """The numbers of nested lists, in order."""
    if isinstance(value, Items) != bool(shape) or (isinstance(value, Items) and len(value.values) != shape[0]):
        raise Problem("E0306", f"the lists of {name} are not equally long", span, "", "write a matrix as [[1.0, 2.0], [3.0, 4.0]]")
    if isinstance(value, Items):
        for item in value.values:
            yield from _leaves(name, item, shape[1:], span)
    elif is_number(value):
        yield value
    else:
        raise Problem("E0306", f"{name} must hold numbers, found {describe(value)}", span)
