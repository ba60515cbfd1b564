"""Attributes of nodes seen from outside: what differs from the defaults, what fits a field, which values are the same."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Literal, TypeAlias, TypeGuard, Union, get_args, get_origin, get_type_hints

from tpucc.diagnostics import listed
from tpucc.ir.constants import Constant
from tpucc.ir.node import Attributes
from tpucc.ir.types import Range

Value: TypeAlias = "int | float | str | bool | Range | Constant | tuple[Value, ...] | Record | Attributes | None"
"""The types of an attribute's value. A frozen dataclass of such values is allowed too."""
_WORDS: Mapping[object, str] = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "true or false",
    type(None): "none",
    Constant: "an array",
    Range: "a range [low, high]",
}


REQUIRED: Any = object()
"""Stands for the default of a field that has none."""


class Misfit(Exception):
    """A value that doesn't fit a field."""


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass as text has it, `requantise(zero=3)`: which one it is, the type of the attribute says (see `conform`)."""

    name: str
    parts: Mapping[str, Value]


def record_name(kind: type) -> str:
    """The name of the dataclass in the text form."""
    return kind.__name__.lower()


def is_record(value: object) -> TypeGuard[Attributes]:
    """Whether a value is shown as the name and the fields of its dataclass."""
    return _is_record_type(type(value))


def non_default(attributes: Attributes) -> Iterator[tuple[str, Value]]:
    """The attributes that differ from their defaults, in order: those that the text form shows."""
    for field in fields(attributes):
        value: Value = getattr(attributes, field.name)
        default = _default(field)
        if default is REQUIRED or identity(value) != identity(default):
            yield field.name, value


def identity(value: object) -> object:
    """A hashable stand-in for a value of an attribute, equal for the same values only.

    0.0 and -0.0 differ, so do 1, 1.0 and True; NaN is the same as NaN. Arrays are compared by content.
    """
    if isinstance(value, Constant):
        return value
    if isinstance(value, tuple):
        return tuple(map(identity, value))
    return (type(value), *identities(value)) if is_record(value) else repr(value)


def identities(attributes: Attributes) -> tuple[object, ...]:
    """`identity` of each attribute, in order."""
    return tuple(identity(getattr(attributes, field.name)) for field in fields(attributes))


@cache
def schema(kind: type) -> Mapping[str, tuple[Any, Any]]:
    """The type and the default of each field of a dataclass, in order; `REQUIRED` is no default."""
    hints = get_type_hints(kind)
    return {field.name: (hints[field.name], _default(field)) for field in fields(kind) if field.init}


def required(kind: type) -> list[str]:
    """The fields without a default."""
    return [name for name, (_, default) in schema(kind).items() if default is REQUIRED]


def conform(value: Value, expected: object) -> Value:
    """`value` as a field of type `expected` takes it: integers become floats where only these fit. Raises `Misfit`."""
    if expected is Any or expected is type(value) or (expected is None and value is None):
        return value
    if expected is float and type(value) is int:
        return float(value)
    if get_origin(expected) in (Union, types.UnionType):
        return _any_of(value, get_args(expected))
    if get_origin(expected) is tuple and isinstance(value, tuple):
        return _each_of(value, get_args(expected))
    if get_origin(expected) is Literal and value in get_args(expected):
        return value
    if _is_enumeration(expected) and isinstance(value, str) and value in tuple(expected):
        return expected(value)
    if isinstance(value, Record) and isinstance(expected, type) and _is_record_type(expected) and value.name == record_name(expected):
        return _made(value.parts, expected)
    raise Misfit


def described(expected: object) -> str:
    """A field's type in words: `an integer`, `a tuple of numbers`."""
    if get_origin(expected) in (Union, types.UnionType):
        return listed([described(kind) for kind in get_args(expected)], "or")
    if get_origin(expected) is tuple or expected is tuple:
        kinds = [kind for kind in get_args(expected) if kind is not ...]
        return f"a tuple ({', '.join(map(described, kinds))}{', …' if ... in get_args(expected) else ''})" if kinds else "a tuple"
    if get_origin(expected) is Literal:
        return listed([repr(choice) for choice in get_args(expected)], "or")
    if _is_enumeration(expected):
        return listed([repr(choice.value) for choice in expected], "or")
    if isinstance(expected, type) and _is_record_type(expected):
        return f"{record_name(expected)}({', '.join(f'{name}=…' for name in schema(expected))})"
    return _WORDS.get(expected, "another value")


def _is_enumeration(expected: object) -> TypeGuard[type[StrEnum]]:
    return isinstance(expected, type) and issubclass(expected, StrEnum)


def _is_record_type(kind: type) -> bool:
    return is_dataclass(kind) and kind not in (Constant, Range)


def _made(parts: Mapping[str, Value], kind: type) -> Attributes:
    known = schema(kind)
    if not parts.keys() <= known.keys() or not parts.keys() >= {*required(kind)}:
        raise Misfit
    made: Attributes = kind(**{name: conform(value, known[name][0]) for name, value in parts.items()})
    return made


def _any_of(value: Value, kinds: tuple[object, ...]) -> Value:
    """The first exact fit, else the first fit."""
    if type(value) in kinds:
        return value
    for kind in kinds:
        try:
            return conform(value, kind)
        except Misfit:
            continue
    raise Misfit


def _each_of(value: tuple[Value, ...], kinds: tuple[object, ...]) -> Value:
    expected = kinds[:1] * len(value) if kinds[1:] == (...,) else () if kinds == ((),) else kinds
    if len(expected) != len(value):
        raise Misfit
    return tuple(conform(item, kind) for item, kind in zip(value, expected, strict=True))


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default
