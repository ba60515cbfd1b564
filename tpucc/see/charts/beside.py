"""Names beside the points of a chart, where nothing else is: next to the point, or farther away at the end of a thin line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tpucc.explain.names import shortened, whole
from tpucc.see.heading import INK_HALO
from tpucc.see.svg import NOTHING, Markup, Point, Rect, centred, joined, label, line
from tpucc.see.text import SMALL, text_width

REACHES = (12.0, 20.0, 30.0, 42.0, 56.0, 72.0)
"""How long the line may be to a name that doesn't fit beside its point's mark."""
TURNS = (-35, 35, -145, 145, 0, 180, -65, 65, -115, 115, -15, 15, -165, 165, -90, 90, -50, 50, -130, 130)
"""The directions of such a line, in degrees from the right, downwards. A short line in any of them is better than a longer one."""
NEAR = 9.0
PIECE = 3.0
"""A line is looked at in pieces of so many pixels."""
FEW = 12
"""Points whose names may stand farther away, at the end of a line."""
LIMITS = (24, 16, 10, 6)
"""So many characters of each name are tried."""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point with its name, `away` pixels from it. If there isn't room for all names, the points with the most weight have one."""

    name: str
    place: Point
    weight: int
    away: float = NEAR


@dataclass(frozen=True, slots=True)
class Room:
    """Where names may stand: within `area`, never on what is in `taken` or on one of the points' `marks`.

    A line to a name never crosses `words` or other lines, nor a mark that isn't of its point.
    """

    area: Rect
    taken: list[Rect]
    marks: Sequence[Rect] = field(default=())
    words: list[Rect] = field(default_factory=list)

    def place(self, words: str, point: Point, away: float, bold: bool = False, is_led: bool = True) -> Markup:
        """The words for a point whose mark reaches `away` far; nothing if there is no room, or if they need a line and `is_led` is false.
        The words' place is taken from then on."""
        width, crossed = text_width(words, SMALL, bold), [*self.words, *(mark for mark in self.marks if not are_near(mark.middle, point))]
        for left, base, end in _places(point, width, away):
            if end is not None and not is_led:
                break
            rect = Rect(left, base - SMALL, left + width, base + 3)
            lead = [] if end is None else pieces(point, end, away + 2)
            if self._is_free(rect, lead, crossed):
                self.words.extend((rect, *lead))
                self.taken.extend((rect, *lead))
                return _written(words, point, (left, base), end, bold)
        return NOTHING

    def _is_free(self, rect: Rect, lead: Sequence[Rect], crossed: Sequence[Rect]) -> bool:
        """Whether nothing lies on the place of a name, and none of `crossed` on the line to it."""
        inside = self.area.left <= rect.left and rect.right <= self.area.right
        inside = inside and self.area.top <= rect.top and rect.bottom <= self.area.bottom
        return inside and not any(map(rect.meets, [*self.taken, *self.marks])) and not any(a.meets(b) for a in lead for b in crossed)


def names_of_points(points: Sequence[NamedPoint], room: Room) -> tuple[Markup, int]:
    """Names beside the points, one for points that lie on each other; and how many points have none, as there is no room."""
    groups: list[list[NamedPoint]] = []
    for point in points:
        near = next((group for group in groups if are_near(group[0].place, point.place)), None)
        if near is None:
            groups.append([point])
        else:
            near.append(point)
    names = [*dict.fromkeys(point.name for point in points)]
    short = [dict(zip(names, shortened([*map(whole, names)], limit), strict=True)) for limit in LIMITS]
    placed, unnamed = list[Markup](), 0
    for group in sorted(groups, key=lambda group: -sum(point.weight for point in group)):
        words = dict.fromkeys(shared_words([known[point.name] for point in group]) for known in short)
        away = max(point.away for point in group)
        found = next(filter(None, (room.place(text, group[0].place, away, is_led=len(groups) <= FEW) for text in words)), None)
        placed += [found] if found else []
        unnamed += 0 if found else len(group)
    return joined(placed), unnamed


def shared_words(names: Sequence[str]) -> str:
    """The names of points that lie on each other: both, or the first and the last with how many there are."""
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} … {names[-1]} ({len(names)})"


def are_near(one: Point, other: Point) -> bool:
    """Whether the marks of two points lie on each other, so that they share a name."""
    return abs(one[0] - other[0]) < NEAR and abs(one[1] - other[1]) < NEAR


def pieces(start: Point, end: Point, first: float = 0.0) -> list[Rect]:
    """Small rectangles on a line, from `first` pixels behind its start."""
    length = math.dist(start, end) or 1.0
    count = max(1, math.ceil((length - first) / PIECE))
    shares = [(first + (length - first) * place / count) / length for place in range(count + 1)]
    return [centred(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t, (2.0, 2.0)) for t in shares]


def _places(point: Point, width: float, away: float) -> Iterator[tuple[float, float, Point | None]]:
    """Left end and baseline of the words, the nearest places first; and the end of the line that leads there, if one is needed."""
    x, y = point
    right, before, centre = x + away, x - away - width, x - width / 2
    yield from ((right, y + 4, None), (before, y + 4, None), (centre, y - away, None), (centre, y + away + 10, None))
    for reach, turn in itertools.product(REACHES, TURNS):
        across, down = math.cos(math.radians(turn)) * (away + reach), math.sin(math.radians(turn)) * (away + reach)
        end = x + across, y + down
        yield (end[0] + 2 if across > 0 else end[0] - 2 - width), end[1] + 4, end


def _written(words: str, point: Point, place: Point, end: Point | None, bold: bool) -> Markup:
    lead = NOTHING if end is None else line(*point, *end, "rule")
    return joined([lead, label(words, place[0], place[1], SMALL, "ink", "start", font_weight="bold" if bold else None, **INK_HALO)])
