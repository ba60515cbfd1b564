"""Values of a directive's words. All raise `LineError` E0713."""

from __future__ import annotations

import math

from tpucc.diagnostics import Span, printable
from tpucc.ir.dtypes import DeviceFormat
from tpucc.isa.listing.words import Word, number_in, signed_in


def number(word: Word) -> int | float:
    """An integer or a finite float."""
    value = number_in(word.text)
    if value is not None:
        return value
    return real(word)


def real(word: Word) -> float:
    """A finite float."""
    try:
        value = float(word.text[:40])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        word.fail("E0713", f"expected a number for {word.key}, found {printable(word.text)}")
    return value


def spans(word: Word | None) -> tuple[Span, ...]:
    """The places of `at=[3:5-12 4:1-5:9]`; none without a word."""
    return () if word is None else tuple(_span(word, text) for text in word.text.strip("[]").split())


def _span(word: Word, text: str) -> Span:
    span = Span.parse(text)
    if span is None:
        word.fail("E0713", f"expected places such as 3:5-12 or 3:5-4:2, found {printable(text)}")
    return span


def sizes(word: Word, rank: int = 0) -> tuple[int, ...]:
    """`8x4` as numbers; `rank` of them when that is given."""
    found = [number_in(text) for text in word.text.split("x")]
    known = [size for size in found if size is not None]
    if len(known) != len(found) or (rank and len(found) != rank):
        word.fail("E0713", f"expected sizes such as {'8x4' if rank != 1 else '8'}, found {printable(word.text)}")
    return tuple(known)


def zero(word: Word, of: DeviceFormat) -> int:
    """A zero point."""
    value = signed_in(word.text)
    if value is None or value not in of.zero_points:
        first, last = of.zero_points[0], of.zero_points[-1]
        word.fail("E0713", f"zero must be an integer from {first} to {last}, not {printable(word.text)}")
    return value


def integers(word: Word) -> tuple[int, ...]:
    """`8` or `[8 8 4]`."""
    values = [number_in(text) for text in word.text.strip("[]").replace(",", " ").split()]
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        word.fail("E0713", f"expected numbers for {word.key}, found {printable(word.text)}")
    return tuple(known)
