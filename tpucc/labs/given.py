"""A call in words: what a submission's function was given, so that it can be tried again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice

import numpy as np

from tpucc.numerics import AnyArray

LONGEST = 4000
"""Characters of one argument."""
LINE = 90
"""Characters of a call on one line; a longer one has a line for each argument."""
ELEMENTS, ENTRIES, DEPTH = 1000, 50, 3
"""Of an array and of a list that are shown whole, and how deep values within values are shown."""


def call_text(function: str, arguments: Sequence[object]) -> str:
    """`quantise(np.array([0.5], np.float32), 0.25, 3)`; what is long is cut, an array that is larger than `ELEMENTS` has its shape."""
    texts = [_cut(shown(argument)) for argument in arguments]
    line = f"{function}({', '.join(texts)})"
    if len(line) <= LINE and "\n" not in line:
        return line
    return f"{function}(\n" + "".join("".join(f"  {part}\n" for part in f"{text},".splitlines()) for text in texts) + ")"


def shown(value: object, depth: int = 0) -> str:
    """One value: as Python's source where that is short; a value of tpucc's by its text or its fields."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, str | int | float | np.generic) or value is None:
        return repr(value.item() if isinstance(value, np.generic) else value)
    if depth >= DEPTH:
        return f"{type(value).__name__}(…)"
    if isinstance(value, Mapping):
        return f"{{{_entries((f'{shown(key, depth + 1)}: {shown(entry, depth + 1)}' for key, entry in value.items()), len(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{_entries((shown(entry, depth + 1) for entry in value), len(value))}]"
    if type(value).__str__ is not object.__str__:
        return str(value)
    if isinstance(value, Sequence) or (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        return f"{type(value).__name__} of {len(value)}: [{_entries((shown(value[k], depth + 1) for k in range(len(value))), len(value))}]"
    if is_dataclass(value):
        parts = [f"{entry.name}={shown(getattr(value, entry.name), depth + 1)}" for entry in fields(value)]
        if not depth and sum(map(len, parts)) > LINE:
            return "\n".join((f"{type(value).__name__}(", *(f"  {part}," for part in parts), ")"))
        return f"{type(value).__name__}({', '.join(parts)})"
    return f"{type(value).__name__}(…)"


def _entries(texts: Iterable[str], count: int) -> str:
    return ", ".join(islice(texts, ENTRIES)) + (f", … {count - ENTRIES:,} more" if count > ENTRIES else "")


def _array(values: AnyArray) -> str:
    text = np.array2string(values, threshold=ELEMENTS, edgeitems=3, separator=", ", max_line_width=10**9, formatter={"all": str})
    said = " ".join(text.split()).replace("...", "…")
    kind = values.dtype.name
    return f"np.array({said}, np.{kind})" if values.size <= ELEMENTS else f"array of {kind}, shape {list(values.shape)}: {said}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
