"""A sweep as a chart: what is reached at which cost.

A point's colour says what limits it, and so do words wherever there is room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from tpucc.see.charts.beside import NamedPoint, Room, names_of_points, pieces
from tpucc.see.charts.chart import Scale, foot_axis, log_scale, side_axis
from tpucc.see.heading import EDGE, Entry, dot_sign, legend
from tpucc.see.palette import Kind, ink_line, solid_paint
from tpucc.see.svg import NOTHING, Markup, Point, Rect, picture, points_text, tag, title

WIDTH, LEFT, RIGHT = 620.0, 84.0, 28.0
TOP, PLOT, BELOW = 62.0, 240.0, 44.0
DOT = 5.0
"""The radius of a point on a front."""
GRAIN = 4.0
"""Pixels: points that are closer, and have one bottleneck, are drawn once."""
FEW = 9
"""Different values on an axis that stand there themselves."""

LIMITS: Mapping[str, Kind] = {
    "weight memory": Kind.WEIGHTS,
    "weight shift": Kind.WEIGHTS,
    "matrix unit": Kind.MATRIX,
    "activation": Kind.VECTOR,
    "host link": Kind.HOST,
    "host work": Kind.HOST,
    "data dependencies": Kind.BOUNDARY,
    "nothing": Kind.MOVE,
}
"""The colour of each bottleneck."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a chart: its number, its values, what limits it, and its words."""

    point: int
    x: float
    y: float
    limit: str
    words: str


Worded = Callable[[float], str]


def front_svg(
    key: str,
    about: str,
    names: tuple[str, str],
    marks: Sequence[Mark],
    fronts: Mapping[str, Sequence[int]],
    worded: tuple[Worded, Worded],
    *,
    binary: bool = False,
) -> str:
    """All points over a cost, both axes logarithmic, and steps through those on the `fronts`, which have names.

    `names` are those of the axes; costs that are `binary` are marked at powers of two. `about` is the picture's title for
    who doesn't see it.
    """
    across, up = (
        log_scale([mark.x for mark in marks], LEFT, WIDTH - RIGHT),
        log_scale([mark.y for mark in marks], TOP + PLOT, TOP),
    )
    on_front = {point for front in fronts.values() for point in front}
    first = {(round(across(m.x) / GRAIN), round(up(m.y) / GRAIN), m.limit): m for m in reversed(marks)}
    places = {mark.point: (across(mark.x), up(mark.y)) for mark in marks}
    behind = [_dot(mark, places[mark.point], 3.0, opacity="0.7") for mark in first.values() if mark.point not in on_front]
    lines = {name: _steps([places[point] for point in front if point in places]) for name, front in fronts.items()}
    dots = [_link(mark, places[mark.point]) for mark in marks if mark.point in on_front]
    signs = legend(_signs([mark.limit for mark in marks]), EDGE, 2.0, WIDTH - EDGE)
    values, heights = _marked(across, [mark.x for mark in marks], binary), up.ticks(7)
    axes = [
        foot_axis(across, TOP + PLOT, names[0], values, [*map(worded[0], values)]),
        side_axis(up, LEFT, WIDTH - RIGHT, names[1], heights, [*map(worded[1], heights)]),
    ]
    drawn = [*(mark.point for mark in first.values()), *on_front]
    parts = [signs.markup, *axes, *behind, *map(_line, lines.values()), *dots, _line_names(lines, [places[point] for point in drawn])]
    return picture(key, about, WIDTH, TOP + PLOT + BELOW, *parts)


def _steps(points: Sequence[Point]) -> list[Point]:
    """The corners of a front: until the next point, a higher cost reaches nothing more."""
    return [*chain.from_iterable((one, (other[0], one[1])) for one, other in pairwise(points)), *points[-1:]]


def _line(points: Sequence[Point]) -> Markup:
    return tag("polyline", attributes=ink_line("ink"), points=points_text(points), stroke_width=1.5) if len(points) > 1 else NOTHING


def _line_names(lines: Mapping[str, Sequence[Point]], points: Sequence[Point]) -> Markup:
    """The names of lines, each beside the end of its own, or farther away where other points are in the way."""
    taken = [piece for way in lines.values() for one, other in pairwise(way) for piece in pieces(one, other)]
    marks = [Rect(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    room = Room(Rect(LEFT, TOP, WIDTH - RIGHT, TOP + PLOT), taken, marks)
    names, _ = names_of_points([NamedPoint(name, way[-1], len(way)) for name, way in lines.items() if name and way], room)
    return names


def _dot(mark: Mark, place: Point, radius: float, *words: Markup, opacity: str | None = None) -> Markup:
    """A mark at its place, which the page's script finds by the point's number."""
    paint = {**solid_paint(LIMITS[mark.limit]), "data-point": str(mark.point), "fill-opacity": opacity}
    return tag("circle", *words, attributes=paint, cx=place[0], cy=place[1], r=radius)


def _link(mark: Mark, place: Point) -> Markup:
    """A mark on a front, which is a link to its point and has its words."""
    return tag("a", _dot(mark, place, DOT, title(mark.words)), href=f"#point={mark.point}")


def _signs(limits: Sequence[str]) -> list[Entry]:
    """The bottlenecks that there are; those of one colour have one entry."""
    names: dict[Kind, list[str]] = {}
    for limit in LIMITS:
        if limit in limits:
            names.setdefault(LIMITS[limit], []).append(limit)
    return [(dot_sign(solid_paint(kind)), ", ".join(words)) for kind, words in names.items()]


def _marked(scale: Scale, values: Sequence[float], binary: bool) -> list[float]:
    """The values themselves where they are few, else round ones; `binary` ones are powers of two."""
    own = sorted(set(values))
    if len(own) <= FEW:
        return own
    if not binary:
        return scale.ticks(7)
    powers = [2.0**power for power in range(64) if scale.low <= 2.0**power <= scale.high]
    return powers[:: max(1, math.ceil(len(powers) / 7))]
