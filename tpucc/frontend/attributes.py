"""Static arguments of operators, checked against the types that their attributes are declared with."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from tpucc.diagnostics import Span, listed
from tpucc.frontend.problem import LimitReached, Limits, Problem
from tpucc.frontend.static import require_static
from tpucc.frontend.values import Items, Value, describe, is_number
from tpucc.ir.constants import Constant
from tpucc.ops.rules import MAX_RANK

WORDS = {int: "an integer", float: "a number", str: "a string", bool: "True or False"}


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
        if get_origin(annotation) is tuple and get_args(annotation) == (int, ...) and not isinstance(value, Items):
            return (msgspec.convert(value, int),)
        return msgspec.convert(_plain(value), annotation)
    except msgspec.ValidationError:
        message = f"{name} must be {listed(list(dict.fromkeys(_kinds(annotation))), 'or')}, found {describe(value)}"
        raise Problem("E0306", message, span) from None


def _plain(value: Value) -> object:
    return tuple(map(_plain, value.values)) if isinstance(value, Items) else value


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
