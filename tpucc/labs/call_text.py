"""A call in words: what a submission's function was given, so that it can be tried again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from textwrap import indent
from typing import Any

import numpy as np

from tpucc.diagnostics import counted
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import AnyArray
from tpucc.schedule.listing import Listing

LONGEST = 4000
"""Characters of one argument."""
LINE = 90
"""Characters of a call on one line; a longer one has a line for each argument."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Elements of an array and entries of a list that are shown whole, and how deep values within values are shown."""

    elements: int = 1000
    entries: int = 50
    depth: int = 3


SHORT, WHOLE = Limits(), Limits(sys.maxsize, sys.maxsize, sys.maxsize)


def call_text(function: str, arguments: Sequence[object]) -> str:
    """`quantise(np.array([0.5], np.float32), 0.25, 3)`; what is long is cut, an array that is larger than `ELEMENTS` has its shape. Where
    values of tpucc's stand as their fields, the imports with which the call can be tried come first."""
    texts = [_cut(shown(argument)) for argument in arguments]
    line = f"{function}({', '.join(texts)})"
    head = f"import numpy as np; {imports}\n" if (imports := "; ".join(dict.fromkeys(_imports(arguments)))) else ""
    if len(line) <= LINE and "\n" not in line:
        return f"{head}{line}"
    lines = indent(",\n".join(texts), "  ")
    return f"{head}{function}(\n{lines}\n)"


def _imports(arguments: Sequence[object]) -> Iterator[str]:
    """The import of each class of tpucc's whose values `_fields` shows."""
    for value in arguments:
        if is_dataclass(value) and type(value).__module__.startswith("tpucc.") and shown(value).startswith(f"{type(value).__name__}("):
            yield f"from {type(value).__module__} import {type(value).__name__}"
            yield from _imports([getattr(value, entry.name) for entry in fields(value)])


def shown(value: object, limits: Limits = SHORT, depth: int = 0) -> str:
    """One value: as Python's source where that is short; a value of tpucc's by its text or its fields. Without limits, values of one text
    are equal."""
    if isinstance(value, np.ndarray):
        return _array(value, limits)
    if isinstance(value, str | int | float | np.generic) or value is None:
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, list | tuple | Mapping):
        return _several(value, limits, depth)
    if isinstance(value, TileProgram | Listing):
        lines = (f"  {entry.index:>3}  {entry.text}" for entry in islice(value, limits.entries))
        more = ["  …"] * (len(value) > limits.entries)
        return "\n".join((f"{type(value).__name__}: {counted(len(value), 'instruction')}", *lines, *more))
    if type(value).__str__ is not object.__str__:
        return str(value)
    if is_dataclass(value) and not isinstance(value, type) and depth < limits.depth:
        return _fields(value, limits, depth)
    return f"{type(value).__name__}(…)"


def _fields(value: Any, limits: Limits, depth: int) -> str:
    """A dataclass as its fields, each on a line where it is an argument and long."""
    parts = [f"{entry.name}={shown(getattr(value, entry.name), limits, depth + 1)}" for entry in fields(value)]
    if not depth and sum(map(len, parts)) > LINE:
        return "\n".join((f"{type(value).__name__}(", *(f"  {part}," for part in parts), ")"))
    return f"{type(value).__name__}({', '.join(parts)})"


def _several(value: Any, limits: Limits, depth: int) -> str:
    """A list, a tuple or a dict; of a long one the first entries."""
    start, end = ("{", "}") if isinstance(value, Mapping) else ("(", ")") if isinstance(value, tuple) else ("[", "]")
    if depth >= limits.depth and value:
        return f"{start}…{end}"
    items = ((entry,) for entry in value) if not isinstance(value, Mapping) else value.items()
    texts = [": ".join(shown(part, limits, depth + 1) for part in entry) for entry in islice(items, limits.entries)]
    texts += [f"… {len(value) - limits.entries:,} more"] if len(value) > limits.entries else []
    return f"{start}{', '.join(texts)}{',' if isinstance(value, tuple) and len(value) == 1 else ''}{end}"


def _array(values: AnyArray, limits: Limits) -> str:
    if values.ndim > 1 and not values.size:
        return f"np.zeros({list(values.shape)}, np.{values.dtype.name})"
    text = np.array2string(values, threshold=limits.elements, edgeitems=3, separator=", ", max_line_width=10**9, formatter={"all": str})
    said = " ".join(text.split()).replace("...", "…")
    kind = values.dtype.name
    return f"np.array({said}, np.{kind})" if values.size <= limits.elements else f"array of {kind}, shape {list(values.shape)}: {said}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
