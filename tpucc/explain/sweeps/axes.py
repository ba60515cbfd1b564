"""The axes of a sweep: which numbers of the machine and which params of the source vary, and over which values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.options import static_text
from tpucc.target import number_of, number_text
from tpucc.user_options import flag_of

Kind = Literal["set", "param"]
KEYWORDS: Mapping[Kind, str] = {"set": "overrides", "param": "params"}
LINK = ":"
"""Between names that vary together, and between their values: `mxu:unified_buffer_rows=128:196608,256:98304`."""
BRACKETS = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass(frozen=True)
class Axis:
    """Names that vary together, mostly one, and their values in order, as the command line writes them: `34e9`, `[1, 2]`."""

    kind: Kind
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        return LINK.join(self.names)

    @property
    def flag(self) -> str:
        return flag_of(KEYWORDS[self.kind])

    @cached_property
    def types(self) -> tuple[type, ...]:
        """For each name the type of its values in a table: int or float where all of them are numbers, else str."""
        kinds = [{type(number_or_text(text)) for text in column} for column in zip(*self.values, strict=True)]
        return tuple(own.pop() if len(own) == 1 else float if own == {int, float} else str for own in kinds)

    def pairs(self, place: int) -> Iterator[tuple[str, str]]:
        """The names with their values at a place."""
        return zip(self.names, self.values[place], strict=True)


def number_or_text(text: str) -> Any:
    """The number that a text is, or else the text."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if type(found) in (int, float) else text


def axis_of_text(kind: Kind, name: str, text: str) -> Axis:
    """The axis of `NAME=A,B,…`, as the command line has it. Raises `UsageError` E0560 and E0531."""
    names = tuple(part.strip() for part in name.split(LINK))
    parts = [part.strip() for part in split(text, ",")]
    linked = len(names) > 1
    return _axis(kind, names, [tuple(value.strip() for value in split(part, LINK)) if linked else (part,) for part in parts])


def axis_of_values(kind: Kind, names: str | Sequence[str], values: object) -> Axis:
    """The axis of Python values: a list of them, or one alone. With several names each value is a tuple."""
    own = (names,) if isinstance(names, str) else tuple(names)
    several = isinstance(values, Iterable) and not isinstance(values, str)
    given = list(values) if isinstance(values, Iterable) and several else [values]
    rows = [tuple(value) if len(own) > 1 and isinstance(value, list | tuple) else (value,) for value in given]
    return _axis(kind, own, [tuple(_text(kind, value) for value in row) for row in rows])


def split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no brackets and no quotation marks."""
    parts, depth, quoted, start = list[str](), 0, False, 0
    for place, character in enumerate(text):
        if character == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif character == separator and not depth:
            parts.append(text[start:place])
            start = place + 1
        else:
            depth += BRACKETS.get(character, 0)
    return [*parts, text[start:]]


def require_apart(axes: Sequence[Axis]) -> None:
    """Raises `UsageError` E0560 when two axes have one name."""
    seen = set[tuple[Kind, str]]()
    for axis in axes:
        for name in axis.names:
            if (axis.kind, name) in seen:
                raise wrong(f"{axis.flag} {printable(name)} is given twice", f"one {axis.flag} has all of its values")
            seen.add((axis.kind, name))


def wrong(text: str, help: str = "") -> UsageError:
    """The error of an axis."""
    return UsageError(Diagnostic("E0560", text, help=(help,)))


def _text(kind: Kind, value: object) -> str:
    if kind == "param":
        return static_text(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str) else repr(plain)


def _axis(kind: Kind, names: tuple[str, ...], values: Sequence[tuple[str, ...]]) -> Axis:
    flag, name = flag_of(KEYWORDS[kind]), printable(LINK.join(names))
    if not all(names) or len(set(names)) < len(names):
        raise wrong(f"{flag} {name} doesn't name one or several different things", f"write {flag} NAME=A,B,…")
    for place, row in enumerate(values):
        if len(row) != len(names):
            shown = printable(LINK.join(row))
            raise wrong(f"{flag} {name} has {counted(len(names), 'name')}, and {shown} has {counted(len(row), 'value')}")
        if not all(row):
            raise wrong(f"value {place + 1} of {flag} {name} is empty", "values have commas between them, as in 128,256")
    if not values:
        raise wrong(f"{flag} {name} has no values", "give it at least one")
    made = [tuple(map(_number, names, row)) if kind == "set" else row for row in values]
    for place, row in enumerate(made):
        if row in made[:place]:
            raise wrong(f"{flag} {name} has the value {printable(LINK.join(row))} twice")
    return Axis(kind, names, tuple(made))


def _number(field: str, text: str) -> str:
    """A number of the machine as people write it, the same for `34e9` and `34000000000`. Points with one that no machine has aren't
    compiled."""
    return number_text(number_of(field, text))
