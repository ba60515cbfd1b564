"""What a submission returned where another kind of value was expected, in words."""

from __future__ import annotations

import numpy as np

from tpucc.diagnostics import counted
from tpucc.guest.values import Plain
from tpucc.numerics import AnyArray
from tpucc.plugins.failures import Failed

LONGEST = 60
"""Characters of a value that are shown."""


def integers(answer: Plain, shape: tuple[int, ...], expected: str) -> AnyArray:
    """An array of integers of this shape, of any of NumPy's types. Raises `Failed`, which says what was `expected`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        raise Failed("result", f"returned {said(answer)}; expected {expected}") from None
    if found.shape != shape or (found.dtype.kind not in "iu" and found.size):
        whole = ": `.astype(int)` makes integers, and `//` divides them" if found.dtype.kind == "f" and found.shape == shape else ""
        raise Failed("result", f"returned {said(answer)}; expected {expected}{whole}")
    return found


def said(answer: Plain) -> str:
    """`a str, 'here'`, `None`, `3 integers`; of other numbers in an array or in lists, their type and shape, as `float64 of shape [3]`."""
    try:
        found = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        found = np.asarray(None)
    if found.ndim == 1 and found.dtype.kind in "iu":
        return counted(len(found), "integer")
    if found.ndim and found.dtype.kind in "biuf":
        return f"{found.dtype} of shape {list(found.shape)}"
    if answer is None:
        return "None"
    kind = type(answer).__name__
    return f"a{'n' if kind[0] in 'aeiou' else ''} {kind}, {shortened(repr(answer))}"


def shortened(text: str) -> str:
    """At most `LONGEST` characters of a text."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
