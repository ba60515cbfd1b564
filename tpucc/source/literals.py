"""Static values as the source has them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tpucc.numerics import AnyArray
from tpucc.source.names import Unwritable

LARGEST_DIVISOR = 10_000
"""A factor is written as a division by an integer up to this."""


def literal(value: object) -> str:
    """An attribute's value. Raises `Unwritable` for one that the language has no text for."""
    match value:
        case bool() | int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            return f'"{escaped(value)}"'
        case tuple():
            return as_tuple([literal(item) for item in value])
    raise Unwritable(f"the language has no text for the value {value!r}")


def as_tuple(items: Sequence[str]) -> str:
    """Texts as a tuple."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def escaped(text: str) -> str:
    """The inside of a string literal."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    if re.search(r"[\x00-\x08\x0b-\x1f]", text):
        raise Unwritable(f"a string of the language can't have the characters of {text!r}")
    return re.sub(r"[{}]", lambda brace: brace[0] * 2, text)


def number(value: float) -> str:
    """The shortest text of a float32."""
    short = np.float32(value)
    if not np.isfinite(short):
        raise Unwritable(f"the language has no text for the number {value!r}")
    text = str(short)
    return text if np.float32(float(text)) == short else repr(float(short))


def divisor(value: float) -> int | None:
    """The integer of which a factor is the reciprocal, if that says more than the factor's own digits."""
    if not 1 / LARGEST_DIVISOR <= abs(value) < 1 or len(number(value)) <= 6:
        return None
    found = round(1 / value)
    return found if np.float32(1 / found) == np.float32(value) else None


def array(value: AnyArray) -> str:
    """An f32 array as nested lists."""
    if value.dtype != np.float32:
        raise Unwritable(f"the language has no constants of the type {value.dtype}")
    if value.ndim == 0:
        return number(float(value))
    return f"[{', '.join(map(array, value))}]"
