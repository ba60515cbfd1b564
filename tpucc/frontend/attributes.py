"""Static arguments of operators, checked against the types that their attributes are declared with."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from tpucc.diagnostics import Span, listed
from tpucc.frontend.limits import Limits
from tpucc.frontend.problem import LimitReached, Problem
from tpucc.frontend.static import require_static
from tpucc.frontend.values import Items, Value, describe, is_integer, is_number
from tpucc.ir.constants import Constant
from tpucc.ops.rules import MAX_RANK

WORDS = {int: "an integer", float: "a number", str: "a string", bool: "True or False", type(None): "nothing"}


class _Mismatch(Exception):
    """A value isn't of the declared kind."""


@cache
def declared(attributes: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    """The fields of an attributes class: name, type, and whether a call must give them."""
    hints = get_type_hints(attributes)
    required = {field.name: field.default is MISSING and field.default_factory is MISSING for field in fields(attributes)}
    return tuple((name, hints[name], needed) for name, needed in required.items())


def converted(name: str, value: Value, annotation: Any, span: Span, limits: Limits) -> object:
    """A static value as the attribute `name` wants it. Raises `Problem`."""
    require_static(value, name, span)
    if annotation is Constant:
        return _array(name, value, span, limits)
    try:
        return _as(value, annotation)
    except _Mismatch:
        message = f"{name} must be {listed(list(dict.fromkeys(_kinds(annotation))), 'or')}, found {describe(value)}"
        raise Problem("E0306", message, span) from None


def _as(value: Value, annotation: Any) -> object:
    if get_origin(annotation) in (Union, types.UnionType):
        return _as_one_of(value, get_args(annotation))
    if get_origin(annotation) is tuple:
        return _as_tuple(value, get_args(annotation))
    if annotation is float and is_integer(value):
        return float(value)
    if type(value) is not annotation:
        raise _Mismatch
    return value


def _as_one_of(value: Value, choices: Sequence[Any]) -> object:
    for choice in choices:
        try:
            return _as(value, choice)
        except _Mismatch:
            continue
    raise _Mismatch


def _as_tuple(value: Value, inner: Sequence[Any]) -> tuple[object, ...]:
    """A tuple of any length `(int, ...)`, for which a lone integer will do as in NumPy, or of a given one."""
    if len(inner) == 2 and inner[1] is Ellipsis:
        values = value.values if isinstance(value, Items) else (value,) if inner[0] is int else None
        if values is None:
            raise _Mismatch
        return tuple(_as(item, inner[0]) for item in values)
    if not isinstance(value, Items) or len(value.values) != len(inner):
        raise _Mismatch
    return tuple(_as(item, kind) for item, kind in zip(value.values, inner, strict=True))


def _kinds(annotation: Any) -> list[str]:
    """The declared type in words."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [word for choice in get_args(annotation) if choice is not type(None) for word in _kinds(choice)]
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)
        if len(inner) == 2 and inner[1] is Ellipsis:
            return [f"a list of {_plural(inner[0])}"]
        return [f"a pair of {_plural(inner[0])}" if len(inner) == 2 else f"{len(inner)} {_plural(inner[0])}"]
    return [WORDS.get(annotation, "another kind of value")]


def _plural(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        return "pairs of integers" if len(get_args(annotation)) == 2 else "lists"
    return {int: "integers", float: "numbers", str: "strings"}.get(annotation, "values")


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
    shape: list[int] = []
    while isinstance(value, Items):
        shape.append(len(value.values))
        if not value.values:
            break
        value = value.values[0]
    return tuple(shape)


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
