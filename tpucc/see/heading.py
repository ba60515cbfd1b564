"""What stands above a picture: its title, how to read it, and legends, which say what its colours and signs mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tpucc.explain.names import shown, whole
from tpucc.see.palette import INKS, KINDS, Kind, kind_paint, solid_paint
from tpucc.see.svg import Drawn, Markup, Value, joined, label, line, tag
from tpucc.see.text import BOLD, LARGE, NORMAL, SMALL, broken, text_width

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
    """A small rectangle with these attributes, whose corners have this radius."""
    return lambda x, y: tag("rect", attributes=paint, x=x, y=y - 6, width=SIGN, height=12, rx=radius)


def dot_sign(paint: Mapping[str, Value]) -> Sign:
    """A dot with these attributes."""
    return lambda x, y: tag("circle", attributes=paint, cx=x + SIGN / 2, cy=y, r=5)


def line_sign(ink: str, rise: float = 0.0, **stroke: Value) -> Sign:
    """A piece of a line, which rises by so many pixels."""
    return lambda x, y: line(x, y + rise / 2, x + SIGN, y - rise / 2, ink, **stroke)


EDGE = 20.0
"""The margin around a picture."""
RADIUS = {Kind.MATRIX: 3.0, Kind.VECTOR: 10.0, Kind.MOVE: 3.0, Kind.WEIGHTS: 8.0, Kind.BOUNDARY: 3.0, Kind.HOST: 10.0}
HALO: dict[str, Value] = {
    "class": "f-soft h-paper",
    "stroke": INKS["paper"].light,
    "stroke-width": 4,
    "stroke-linejoin": "round",
    "paint-order": "stroke",
}
"""Attributes of text that lines may cross: it is drawn on a rim of the page's colour."""
INK_HALO: dict[str, Value] = {**HALO, "class": "f-ink h-paper"}
"""The attributes of such text in the ink of names."""


def on_paper(paint: Mapping[str, Value]) -> dict[str, Value]:
    """The attributes of a mark with a rim of the page's colour, so that marks that lie on each other can be told apart."""
    return {**paint, "class": f"{paint['class']} h-paper", "stroke": INKS["paper"].light}


LEAST = 420.0
"""The width of a heading, so that its lines are few."""
MOST_WORDS = 400
"""Letters of a title: only one of names with spaces can have more."""


def heading(
    name: str,
    subtitle: str,
    kinds: tuple[Kind, ...],
    quantised: bool = False,
    width: float = 0.0,
    most: float = math.inf,
    least: float = LEAST,
    meanings: Mapping[Kind, str] = MappingProxyType({}),
    solid: bool = False,
) -> Drawn:
    """What stands above a picture: the title in large type, the subtitle, which says how to read it, and a swatch with its meaning for
    every kind.

    Lines are broken at a width of `most`. `meanings` has the meanings of colours that stand for something else here than in other pictures.
    With `solid` the swatches have the strong colours, as bars have. A long name in the title loses its middle; what the title says of it
    and the subtitle are written in full.
    """
    names, subtitles = broken(titled(name), LARGE, most / BOLD), broken(whole(subtitle), NORMAL, most)
    widths = [*(text_width(text, LARGE, bold=True) for text in names), *(text_width(text, NORMAL) for text in subtitles)]
    width = max(width, *widths, min(least, most))
    parts, height = [], 0.0
    for text in names:
        parts.append(label(text, EDGE, EDGE + height + LARGE, LARGE, font_weight="bold"))
        height += LARGE + 8
    for text in subtitles:
        parts.append(label(text, EDGE, EDGE + height + NORMAL, NORMAL, "soft"))
        height += NORMAL + 8
    paint = solid_paint if solid else kind_paint
    entries = [(box_sign(paint(kind), min(4.0, RADIUS[kind])), meanings.get(kind, KINDS[kind].meaning)) for kind in kinds]
    entries += [(line_sign("soft", stroke_width=2.5), "quantised values")] if quantised else []
    key = legend(entries, EDGE, EDGE + height, EDGE + width)
    return Drawn(joined([*parts, key.markup]), width, height + key.height + 14)


def titled(text: str) -> str:
    """A title with its names shortened. Every word is treated as a name: a word of a sentence is shorter than the limit."""
    return shown(" ".join(map(shown, whole(text).split())), MOST_WORDS)
