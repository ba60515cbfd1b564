"""Names beside the points of a chart, where nothing else is: next to the point, or farther away at the end of a thin line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from tpucc.values import dataclass
from tpucc.viz.heading import INK_HALO
from tpucc.viz.rect import Point, Rect
from tpucc.viz.svg import NOTHING, Markup, joined, label, line
from tpucc.viz.text import SMALL, text_width

STEPS = (22.0, 38.0, 54.0, 70.0, 86.0)
"""How far above or below its point a name may stand that doesn't fit beside it."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where names may stand: within `area`, never on what is in `taken`, and not on `avoided` as long as there is another place.

    A line to a name never crosses one of `names`, and nothing of `shunned` as long as there is another place: marks, other lines.
    """

    area: Rect
    taken: list[Rect]
    avoided: Sequence[Rect] = field(default=())
    names: list[Rect] = field(default_factory=list)
    shunned: list[Rect] = field(default_factory=list)

    def place(self, words: str, point: Point, away: float, bold: bool = False, is_led: bool = True, is_needed: bool = False) -> Markup:
        """The words for a point whose mark reaches `away` far; nothing if there is no room, or if they need a line and `is_led` is false.
        Words that are needed may stand on all but names, and their line may cross all. The words' place is taken from then on."""
        width, crossed = text_width(words, SMALL, bold), [*self.names, *self.shunned]
        ways = [([*self.taken, *self.avoided], crossed), (self.taken, crossed), (self.taken, self.names)]
        for obstacles, shunned in [*ways, *([(self.names, [])] if is_needed else [])]:
            for left, base, end in _places(point, width, away):
                rect = Rect(left, base - SMALL, left + width, base + 3)
                if end is not None and not is_led:
                    break
                lead = [] if end is None else _along(point, end)
                if self._is_free(rect, lead, obstacles, shunned):
                    self.names.append(rect)
                    self.shunned.extend(lead)
                    self.taken.extend((rect, *lead))
                    return _written(words, point, (left, base), end, bold)
        return NOTHING

    def _is_free(self, rect: Rect, lead: Sequence[Rect], obstacles: Sequence[Rect], crossed: Sequence[Rect]) -> bool:
        """Whether nothing is in the way of a name, nor one of `crossed` in that of the line to it."""
        inside = self.area.left <= rect.left and rect.right <= self.area.right
        inside = inside and self.area.top <= rect.top and rect.bottom <= self.area.bottom
        return inside and not any(rect.meets(other) for other in obstacles) and not any(a.meets(b) for a in lead for b in crossed)


def _along(start: Point, end: Point) -> list[Rect]:
    """Small rectangles on the outer part of a line, away from the mark at its start."""
    shares = (0.4, 0.55, 0.7, 0.85)
    spots = [(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t) for t in shares]
    return [Rect(x - 2, y - 2, x + 2, y + 2) for x, y in spots]


def _places(point: Point, width: float, away: float) -> Iterator[tuple[float, float, Point | None]]:
    """Left end and baseline of the words, the nearest places first; and the end of the line that leads there, if one is needed."""
    x, y = point
    right, before, centred = x + away, x - away - width, x - width / 2
    yield from ((right, y + 4, None), (before, y + 4, None), (centred, y - away, None), (centred, y + away + 10, None))
    for step in STEPS:
        for base in (y + 4 + step, y + 4 - step):
            yield right + 6, base, (right + 4, base - 4)
            yield before - 6, base, (x - away - 4, base - 4)


def _written(words: str, point: Point, place: Point, end: Point | None, bold: bool) -> Markup:
    lead = NOTHING if end is None else line(*point, *end, "rule")
    return joined([lead, label(words, place[0], place[1], SMALL, "ink", "start", font_weight="bold" if bold else None, **INK_HALO)])
