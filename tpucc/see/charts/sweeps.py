"""A sweep as charts: what is reached at which cost, and the best point for each pair of values.

A point's colour says what limits it, and so do words wherever there is room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tpucc.explain.names import shown
from tpucc.see.charts.beside import NAME, Room, pieces
from tpucc.see.charts.chart import Scale, foot_axis, log_scale, side_axis
from tpucc.see.heading import EDGE
from tpucc.see.legend import Entry, dot_sign, legend
from tpucc.see.palette import Kind, ink_line, solid_paint
from tpucc.see.rect import Point, Rect
from tpucc.see.svg import NOTHING, Markup, joined, label, number_text, picture, tag, title
from tpucc.see.text import SMALL, fitted, text_width

WIDTH, LEFT, RIGHT = 620.0, 84.0, 28.0
TOP, PLOT, BELOW = 62.0, 240.0, 44.0
HEAD = 4.0
"""Pixels above a heat map."""
DOT = 5.0
"""The radius of a point on a front."""
APART = 15.0
"""Pixels between the names of two lines."""
GRAIN = 4.0
"""Pixels: points that are closer, and have one bottleneck, are drawn once."""
CELL = 22.0
"""The height of a cell with text."""
FEW = 9
"""Different values on an axis that stand there themselves."""
ROOMY = 44.0
"""The width of a cell from which on it has text."""
STRONGEST = 0.42
"""How much of its colour the best cell has: text on it stands out in both themes."""
STEPS, SWATCH = 9, 16.0
"""The colours of the scale below a heat map, and the width of each."""

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


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heat map: the best point there, its value, what limits it, and its words."""

    point: int
    value: float
    limit: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A cell of a heat map whose points can't be compiled: the first of them, the codes of their errors with the counts of points, and the
    words."""

    point: int
    codes: Sequence[tuple[str, int]]
    words: str

    @property
    def lines(self) -> list[str]:
        """A code for all; else the first one with its count, and the second, or how many points have others."""
        (first, count), *others = self.codes
        rest = [f"{code} × {count:,}" for code, count in others]
        more = rest if len(rest) < 2 else [f"others × {sum(count for _, count in others):,}"]
        return [f"{first} × {count:,}", *more] if others else [first]


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a cell, in pixels, with the gap to the next one."""

    x: float
    y: float
    width: float
    height: float

    @property
    def gap(self) -> float:
        return 1.0 if self.width > 8 else 0.0

    def drawn(self, paint: Mapping[str, str], *inside: Markup, inset: float = 0.0) -> Markup:
        wide, high = (max(0.5, side - self.gap - 2 * inset) for side in (self.width, self.height))
        return tag("rect", joined(inside), attributes=paint, x=self.x + inset, y=self.y + inset, width=wide, height=high)

    def written(self, text: str, down: float) -> Markup:
        return label(fitted(text, SMALL, self.width - 4) or "…", self.x + (self.width - self.gap) / 2, self.y + down, anchor="middle")


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
    """All points over a cost, both axes logarithmic, and lines through those on the `fronts`, which have names if there are several.
    `names` are those of the axes; costs that are `binary` are marked at powers of two. `about` is the picture's
    title for who doesn't see it."""
    across, up = (
        log_scale([mark.x for mark in marks], LEFT, WIDTH - RIGHT),
        log_scale([mark.y for mark in marks], TOP + PLOT, TOP),
    )
    on_front = {point for front in fronts.values() for point in front}
    first = {(round(across(m.x) / GRAIN), round(up(m.y) / GRAIN), m.limit): m for m in reversed(marks)}
    behind = [_dot(mark, across, up, 3.0, faint=True) for mark in first.values() if mark.point not in on_front]
    places = {mark.point: (across(mark.x), up(mark.y)) for mark in marks}
    lines = {name: [places[point] for point in front if point in places] for name, front in fronts.items()}
    dots = [_dot(mark, across, up, DOT, faint=False) for mark in marks if mark.point in on_front]
    signs = legend(_signs([mark.limit for mark in marks]), EDGE, 2.0, WIDTH - EDGE)
    values, heights = _marked(across, [mark.x for mark in marks], binary), up.ticks(7)
    axes = [
        foot_axis(across, TOP + PLOT, names[0], values, [*map(worded[0], values)]),
        side_axis(up, LEFT, WIDTH - RIGHT, names[1], heights, [*map(worded[1], heights)]),
    ]
    drawn = [*(mark.point for mark in first.values()), *on_front]
    parts = [signs.markup, *axes, *behind, *map(_line, lines.values()), *dots, *_line_names(lines, [places[point] for point in drawn])]
    return picture(key, about, WIDTH, TOP + PLOT + BELOW, *parts)


def _line(points: Sequence[Point]) -> Markup:
    steps = " ".join(f"{number_text(x)},{number_text(y)}" for x, y in points)
    return tag("polyline", attributes=ink_line("ink"), points=steps, stroke_width=1.5) if len(points) > 1 else NOTHING


def _line_names(lines: Mapping[str, Sequence[Point]], points: Sequence[Point]) -> Iterator[Markup]:
    """The names of lines, each at the end of its own, or at the nearest of its points beside which nothing else is. Where there is none,
    it is drawn over points, above the end or as far above the name below as it needs."""
    named = sorted(((way, name) for name, way in lines.items() if name and way), key=lambda pair: -pair[0][-1][1])
    if not named:
        return
    taken = [piece for way in lines.values() for one, other in pairwise(way) for piece in pieces(one, other)]
    marks = [Rect(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    room, free = Room(Rect(LEFT, TOP, WIDTH - RIGHT, TOP + PLOT), taken, marks), math.inf
    for way, name in named:
        words = fitted(name, SMALL, WIDTH / 2) or "…"
        placed = next(filter(None, (room.place(words, point, DOT + 3) for point in reversed(way))), None)
        if placed is None:
            x, y = way[-1]
            free = min(y - 9, free - APART)
            placed = label(words, x, free, SMALL, "ink", "end" if x > WIDTH / 2 else "start", **NAME)
        yield placed


def heat_svg(key: str, about: str, heads: tuple[Sequence[str], Sequence[str]], cells: Mapping[tuple[int, int], Cell | Hole]) -> str:
    """The best point of each pair of values: `heads` are those of the columns and of the rows; cells are by column and row. `about` is the
    picture's title for who doesn't see it.

    The stronger a cell's colour, the better; the scale is logarithmic. A hole is a dashed box with the code of an error.
    """
    columns, rows = (len(values) for values in heads)
    side = min(150.0, max((text_width(shown(text), SMALL) for text in heads[1]), default=0.0)) + EDGE + 12
    width = min(120.0, (WIDTH - RIGHT - side) / columns)
    roomy = width >= ROOMY
    height = 2 * CELL if roomy else max(4.0, min(CELL, 360.0 / rows))
    values = [_log(cell.value) for cell in cells.values() if isinstance(cell, Cell)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    parts = list[Markup]()
    for (column, row), cell in cells.items():
        box = Box(side + column * width, HEAD + row * height, width, height)
        if isinstance(cell, Hole):
            parts.append(_hole(cell, box, roomy))
        else:
            parts.append(_cell(cell, box, (high - _log(cell.value)) / (high - low) if high > low else 1.0, roomy))
    every = max(1, math.ceil(18 / height))
    parts += [
        label(fitted(shown(text), SMALL, side - EDGE - 8) or "…", side - 8, HEAD + (row + 0.5) * height + 4, anchor="end")
        for row, text in enumerate(heads[1])
        if row % every == 0
    ]
    widest = max((text_width(shown(text), SMALL) for text in heads[0]), default=0.0) + 10
    apart = max(1, math.ceil(widest / width))
    foot = HEAD + rows * height
    parts += [
        label(fitted(shown(text), SMALL, max(width * apart, 40.0)) or "…", side + (column + 0.5) * width, foot + 16, anchor="middle")
        for column, text in enumerate(heads[0])
        if column % apart == 0
    ]
    ends = _ends([cell for cell in cells.values() if isinstance(cell, Cell)])
    parts += [_key(ends, foot + 32)] if ends else []
    scale = 2 * EDGE + sum(text_width(text, SMALL) + 8 for text in ends) + STEPS * SWATCH if ends else 0.0
    named = max(
        (side + (column + 0.5) * width + min(widest, max(width * apart, 40.0)) / 2 for column in range(0, columns, apart)), default=0.0
    )
    whole = max(side + columns * width, scale, named)
    return picture(key, about, whole, foot + (56 if ends else 30), *parts)


def _ends(cells: Sequence[Cell]) -> tuple[str, str] | None:
    """The values of the worst and of the best cell in words; nothing where all are alike."""
    order = sorted(cells, key=lambda cell: -cell.value)
    return (order[0].text, order[-1].text) if order and order[0].value > order[-1].value else None


def _key(ends: tuple[str, str], top: float) -> Markup:
    """The scale of the colours, from the worst value to the best."""
    worst, best = ends
    left = EDGE + text_width(worst, SMALL) + 8
    shares = [step / (STEPS - 1) for step in range(STEPS)]
    swatches = [
        tag("rect", attributes=_strength(share), x=left + place * SWATCH, y=top, width=SWATCH, height=12)
        for place, share in enumerate(shares)
    ]
    return joined([label(worst, EDGE, top + 11), *swatches, label(best, left + STEPS * SWATCH + 8, top + 11)])


def _strength(share: float) -> dict[str, str]:
    """The colour of a cell that is better than so much of the range."""
    return {**solid_paint(Kind.MATRIX), "fill-opacity": f"{0.04 + (STRONGEST - 0.04) * share:.3f}"}


def _cell(cell: Cell, box: Box, share: float, roomy: bool) -> Markup:
    paint = {**_strength(share), "data-point": str(cell.point)}
    if not roomy:
        return box.drawn(paint)
    return _linked(cell.point, joined([box.drawn(paint, title(cell.words)), box.written(cell.text, 18), box.written(cell.limit, 34)]))


def _hole(hole: Hole, box: Box, roomy: bool) -> Markup:
    """All of its surface can be clicked, as that of a cell can."""
    paint = {**ink_line("rule"), "stroke-dasharray": "3 3", "pointer-events": "all", "data-point": str(hole.point)}
    if not roomy:
        return box.drawn(paint, inset=0.5)
    lines = hole.lines
    text = [box.written(words, 18 + 16 * place if len(lines) > 1 else 26) for place, words in enumerate(lines)]
    return _linked(hole.point, joined([box.drawn(paint, title(hole.words), inset=0.5), *text]))


def _dot(mark: Mark, across: Scale, up: Scale, radius: float, *, faint: bool) -> Markup:
    paint = {**solid_paint(LIMITS[mark.limit]), "data-point": str(mark.point)}
    if faint:
        paint["fill-opacity"] = "0.7"
    x, y = across(mark.x), up(mark.y)
    drawn = tag("circle", NOTHING if faint else title(mark.words), attributes=paint, cx=x, cy=y, r=radius)
    return drawn if faint else _linked(mark.point, drawn)


def _linked(point: int, inside: Markup) -> Markup:
    return tag("a", inside, href=f"#point={point}")


def _signs(limits: Sequence[str]) -> list[Entry]:
    """The bottlenecks that there are; those of one colour have one entry."""
    names: dict[Kind, list[str]] = {}
    for limit in LIMITS:
        if limit in limits:
            names.setdefault(LIMITS[limit], []).append(limit)
    return [(dot_sign(solid_paint(kind)), ", ".join(words)) for kind, words in names.items()]


def _log(value: float) -> float:
    return math.log10(max(value, 1e-15))


def _marked(scale: Scale, values: Sequence[float], binary: bool) -> list[float]:
    """The values themselves where they are few, else round ones; `binary` ones are powers of two."""
    own = sorted(set(values))
    if len(own) <= FEW or not binary:
        return own if len(own) <= FEW else scale.ticks(7)
    powers = [2.0**power for power in range(64) if scale.low <= 2.0**power <= scale.high]
    return powers[:: max(1, math.ceil(len(powers) / 7))]
