"""A call in words: what a submission's function was given, so that it can be tried again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
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
ELEMENTS, ENTRIES, DEPTH = 1000, 50, 3
"""Of an array and of a list that are shown whole, and how deep values within values are shown."""


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


def shown(value: object, depth: int = 0) -> str:
    """One value: as Python's source where that is short; a value of tpucc's by its text or its fields."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, str | int | float | np.generic) or value is None:
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, list | tuple | Mapping):
        return _several(value, depth)
    if isinstance(value, TileProgram | Listing):
        lines = (f"  {entry.index:>3}  {entry.text}" for entry in islice(value, ENTRIES))
        return "\n".join((f"{type(value).__name__}: {counted(len(value), 'instruction')}", *lines, *["  …"] * (len(value) > ENTRIES)))
    if type(value).__str__ is not object.__str__:
        return str(value)
    if is_dataclass(value) and not isinstance(value, type) and depth < DEPTH:
        return _fields(value, depth)
    return f"{type(value).__name__}(…)"


def _fields(value: Any, depth: int) -> str:
    """A dataclass as its fields, each on a line where it is an argument and long."""
    parts = [f"{entry.name}={shown(getattr(value, entry.name), depth + 1)}" for entry in fields(value)]
    if not depth and sum(map(len, parts)) > LINE:
        return "\n".join((f"{type(value).__name__}(", *(f"  {part}," for part in parts), ")"))
    return f"{type(value).__name__}({', '.join(parts)})"


def _several(value: Any, depth: int) -> str:
    """A list, a tuple or a dict; of a long one the first entries."""
    start, end = ("{", "}") if isinstance(value, Mapping) else ("(", ")") if isinstance(value, tuple) else ("[", "]")
    if depth >= DEPTH and value:
        return f"{start}…{end}"
    items = value.items() if isinstance(value, Mapping) else value
    texts = [
        f"{shown(entry[0], depth + 1)}: {shown(entry[1], depth + 1)}" if isinstance(value, Mapping) else shown(entry, depth + 1)
        for entry in islice(items, ENTRIES)
    ]
    texts += [f"… {len(value) - ENTRIES:,} more"] if len(value) > ENTRIES else []
    return f"{start}{', '.join(texts)}{',' if isinstance(value, tuple) and len(value) == 1 else ''}{end}"


def _array(values: AnyArray) -> str:
    text = np.array2string(values, threshold=ELEMENTS, edgeitems=3, separator=", ", max_line_width=10**9, formatter={"all": str})
    said = " ".join(text.split()).replace("...", "…")
    kind = values.dtype.name
    return f"np.array({said}, np.{kind})" if values.size <= ELEMENTS else f"array of {kind}, shape {list(values.shape)}: {said}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
