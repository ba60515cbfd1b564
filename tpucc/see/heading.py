"""The heading of a picture: its title, how to read it, and the meaning of its colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from tpucc.explain.names import shown, whole
from tpucc.see.legend import Sign, box_sign, legend, line_sign
from tpucc.see.palette import INKS, KINDS, Kind, kind_paint, solid_paint
from tpucc.see.svg import Drawn, Value, joined, label
from tpucc.see.text import BOLD, LARGE, NORMAL, broken, text_width

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
"""The same for text in the ink of names."""
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

    Lines are broken at a width of `most`. `meanings` are those of colours that stand for something else here than in other pictures;
    `solid` are those of bars. A long name in the title loses its middle; what the title says of it and the subtitle are written in full.
    """
    names, subtitles = broken(titled(name), LARGE, most / BOLD), broken(whole(subtitle), NORMAL, most)
    widths = [*(text_width(line, LARGE, bold=True) for line in names), *(text_width(line, NORMAL) for line in subtitles)]
    width = max(width, *widths, min(least, most))
    parts, height = [], 0.0
    for line in names:
        parts.append(label(line, EDGE, EDGE + height + LARGE, LARGE, font_weight="bold"))
        height += LARGE + 8
    for line in subtitles:
        parts.append(label(line, EDGE, EDGE + height + NORMAL, NORMAL, "soft"))
        height += NORMAL + 8
    entries = [(_sign(kind, solid), meanings.get(kind, KINDS[kind].meaning)) for kind in kinds]
    entries += [(line_sign("soft", stroke_width=2.5), "quantised values")] if quantised else []
    key = legend(entries, EDGE, EDGE + height, EDGE + width)
    return Drawn(joined([*parts, key.markup]), width, height + key.height + 14)


def titled(text: str) -> str:
    """A title with its names shortened. Every word is treated as a name: a word of a sentence is shorter than the limit."""
    return shown(" ".join(map(shown, whole(text).split())), MOST_WORDS)


def _sign(kind: Kind, solid: bool) -> Sign:
    return box_sign(solid_paint(kind) if solid else kind_paint(kind), min(4.0, RADIUS[kind]))
