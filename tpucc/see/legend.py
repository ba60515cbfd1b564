"""Legends: what the signs of a picture mean, in as many lines as the entries take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tpucc.see.svg import Drawn, Markup, Value, joined, label, line, tag
from tpucc.see.text import SMALL, text_width

SIGN, GAP, LINE = 16.0, 18.0, 20.0
"""The width of a sign, the room between two entries, and the height of a line, in pixels."""

Sign = Callable[[float, float], Markup]
"""Draws the sign of an entry from an abscissa on, around a height."""
Entry = tuple[Sign, str]
"""A sign, and what it means."""


def legend(entries: Iterable[Entry], left: float, top: float, right: float) -> Drawn:
    """The entries from left to right. An entry that would pass `right` begins a line. Without entries the legend has no height."""
    parts, x, lines = list[Markup](), left, 0
    for sign, words in entries:
        width = SIGN + 6 + text_width(words, SMALL)
        if not lines or (x > left and x + width > right):
            x, lines = left, lines + 1
        middle = top + LINE * (lines - 0.5)
        parts += [sign(x, middle), label(words, x + SIGN + 6, middle + 4)]
        x += width + GAP
    return Drawn(joined(parts), right - left, LINE * lines)


def box_sign(paint: Mapping[str, Value], radius: float | None = None) -> Sign:
    return lambda x, y: tag("rect", attributes=paint, x=x, y=y - 6, width=SIGN, height=12, rx=radius)


def dot_sign(paint: Mapping[str, Value]) -> Sign:
    return lambda x, y: tag("circle", attributes=paint, cx=x + SIGN / 2, cy=y, r=5)


def line_sign(ink: str, rise: float = 0.0, **stroke: Value) -> Sign:
    """A piece of a line, which rises by so many pixels."""
    return lambda x, y: line(x, y + rise / 2, x + SIGN, y - rise / 2, ink, **stroke)
