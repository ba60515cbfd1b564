"""The ceilings of a roofline with their names: weight memory's slope, the matrix unit's roof, and dashed ones of the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.diagnostics import counted, percent
from tpucc.explain.quantities import number, rate_text
from tpucc.explain.roofs import LINK, UNIT, RooflinePoint, bandwidth_text, ridge
from tpucc.target import Target
from tpucc.viz.charts.beside import NAME, clearest
from tpucc.viz.charts.chart import Scale
from tpucc.viz.heading import EDGE, HALO
from tpucc.viz.palette import ink_line
from tpucc.viz.rect import Point, Rect
from tpucc.viz.svg import Markup, joined, label, line, number_text, tag
from tpucc.viz.text import SMALL, text_width

LEFT = 92.0
"""Where the axis of intensities begins."""
LIFT = 8.0
"""So many pixels higher the names of the two ceilings may stand: points on the ceiling are then below them."""
BELOW = -24.0
"""The same of the slope's name where it stands below the slope."""
GRAINS = 24
"""Places on the slope that are tried for its name where the usual ones have points."""
COVERED, SHORTER, UNDER = 4, (0.0, 0.3, 1.7, 2.5), 0.2
"""What it costs if words lie on a point or on others, if they are the long ones, the short ones, one, or one without the rate, which the
subtitle has, and if they stand under their line."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Logarithmic axes."""

    across: Scale
    up: Scale

    def point(self, intensity: float, rate: float) -> tuple[float, float]:
        return self.across(math.log10(intensity)), self.up(math.log10(rate))


@dataclass(frozen=True)
class Ceilings:
    """Weight memory's slope up to the ridge, and the matrix unit's flat roof. `named` is the place on the slope where its name stands.

    What words are kept away from is found once: a dashed ceiling asks for it at each of a hundred places where its words could stand.
    """

    target: Target
    axes: Axes
    named: Point
    lift: float = 0.0
    """So many pixels above its usual height."""
    model: RooflinePoint | None = None
    """The model, if it has dashed ceilings."""
    marks: Sequence[Rect] = ()
    """Where the points are."""

    @cached_property
    def corner(self) -> Point:
        return _corner(self.target, self.axes)

    @cached_property
    def slope(self) -> float:
        """The angle of the slope on the page, in radians."""
        (x0, y0), (x1, y1) = _foot(self.target, self.axes), self.corner
        return math.atan2(y1 - y0, x1 - x0)

    @property
    def peak(self) -> str:
        return f"matrix unit: {rate_text(self.target.peak_ops)}"

    @cached_property
    def dashed(self) -> list[tuple[str, float, Rect | None]]:
        """The words of each dashed ceiling, its height, and where the words stand; None where they would lie on points or on others."""
        return [self._dashed(self.model, name) for name in self.model.dashed(self.target)] if self.model is not None else []

    def _dashed(self, model: RooflinePoint, name: str) -> tuple[str, float, Rect | None]:
        roof = model.roofs(self.target)[name]
        height = self.axes.up(math.log10(roof))
        words = _ceiling_words(self.target, model, name)
        texts = [*(f"{text}: {rate_text(roof)}" for text in words), words[-1]]
        costs = [
            (self._covered(place) + shorter + UNDER * (place.top > height), text, place)
            for text, shorter in zip(texts, SHORTER, strict=True)
            for place in self._beside(text_width(text, SMALL), height)
        ]
        cost, text, place = min(costs, key=lambda found: found[0])
        return text, height, place if cost < COVERED else None

    def _beside(self, width: float, height: float) -> Iterator[Rect]:
        """The places above and below a dashed ceiling for words of this width, from the right."""
        starts = [self.axes.across.end - width - step for step in range(0, int(self.axes.across.end - LEFT - width), 8)]
        yield from (Rect(x, y, x + width, y + 15) for x in [*starts, LEFT + 2] for y in (height - 18, height + 2))

    def _covered(self, place: Rect) -> int:
        """How much is in the way of words: points and other words most, then the slope, then the line below the ridge."""
        others, outside = sum(map(place.meets, self._others)), place.left < LEFT
        return COVERED * others + 2 * any(map(place.meets, self._slope)) + place.meets(self._under) + 100 * outside

    @cached_property
    def _others(self) -> list[Rect]:
        """The points and the words that have their places before those of dashed ceilings."""
        return [*self.marks, *self.along, self.roof, self._ridge]

    @property
    def bandwidth(self) -> str:
        return f"weight memory: {bandwidth_text(self.target.weight_bandwidth)}"

    def lines(self) -> Markup:
        corner, end = self.corner, self.axes.across.end
        points = " ".join(f"{number_text(x)},{number_text(y)}" for x, y in (_foot(self.target, self.axes), corner, (end, corner[1])))
        roof = tag("polyline", attributes=ink_line("ink"), points=points, stroke_width=2)
        foot = line(corner[0], corner[1], corner[0], self.axes.up.start, "rule", stroke_dasharray="4 4")
        dashed = [line(LEFT, height, end, height, "ink", stroke_width=1.5, stroke_dasharray="7 4") for _, height, _ in self.dashed]
        return joined([foot, roof, *dashed])

    def names(self) -> Markup:
        """Drawn over the points: where no place is free of them, the words can be read, and the points can be pointed at."""
        words = label(self.peak, self.roof.right, self.roof.bottom - 5, SMALL, "ink", "end", **NAME)
        under = label(self.ridge, self._ridge.left + 6, self.axes.up.start - 8, SMALL, "soft", "start", **{**NAME, **HALO})
        x, y = self.named
        turned = f"rotate({math.degrees(self.slope):.2f} {x:.1f} {y:.1f})"
        along = label(self.bandwidth, x, y - 8 - self.lift, SMALL, "ink", "middle", transform=turned, **NAME)
        dashed = [label(text, place.right, place.top + 12, SMALL, "ink", "end", **NAME) for text, _, place in self.dashed if place]
        return joined([words, under, along, *dashed])

    @property
    def ridge(self) -> str:
        return f"ridge {number(round(ridge(self.target)))}"

    def taken(self) -> list[Rect]:
        """Rectangles on which no name may be written: small ones along the slope, the roofs, and the names of all."""
        corner, end = self.corner, self.axes.across.end
        roofs = [Rect(LEFT, height - 3, end, height + 3) for _, height, _ in self.dashed]
        return [*self._slope, Rect(corner[0], corner[1] - 3, end, corner[1] + 3), self._under, *roofs, *self.words()]

    def words(self) -> list[Rect]:
        """Where the names of the roofs and of the ridge stand."""
        return [*self.along, self.roof, self._ridge, *(place for *_, place in self.dashed if place)]

    @cached_property
    def _slope(self) -> list[Rect]:
        corner = self.corner
        rise = math.tan(self.slope)
        steps = [(d, d * rise) for d in range(0, int(corner[0] - LEFT), 4)]
        return [Rect(corner[0] - x - 3, corner[1] - y - 3, corner[0] - x + 3, corner[1] - y + 3) for x, y in steps]

    @cached_property
    def along(self) -> list[Rect]:
        """Small rectangles on the slope's name."""
        half, along = text_width(self.bandwidth, SMALL) / 2, (math.cos(self.slope), math.sin(self.slope))
        away = 12 + self.lift
        middle = (self.named[0] + away * along[1], self.named[1] - away * along[0])
        offsets = [step - half for step in range(0, int(2 * half) + 1, 6)]
        spots = [(middle[0] + d * along[0], middle[1] + d * along[1]) for d in offsets]
        return [Rect(x - 7, y - 7, x + 7, y + 7) for x, y in spots]

    @cached_property
    def roof(self) -> Rect:
        """Above the matrix unit's roof, as far to the right and as low as points allow; half of the words at least are above the roof."""
        (x, y), end, width = self.corner, self.axes.across.end, text_width(self.peak, SMALL)
        ends = [end - step for step in range(0, max(1, int(end - width / 2 - x)), 8)]
        return clearest((Rect(right - width, y - 20 - lift, right, y - 3 - lift) for right in ends for lift in (0, LIFT)), self.marks)

    @cached_property
    def _under(self) -> Rect:
        """The line from the ridge down to the axis."""
        return Rect(self.corner[0] - 3, self.corner[1], self.corner[0] + 3, self.axes.up.start)

    @cached_property
    def _ridge(self) -> Rect:
        """Right of the ridge, or left of it where there is no room or a point."""
        width, below, corner = text_width(self.ridge, SMALL) + 12, self.axes.up.start, self.corner[0]
        lefts = [corner, corner - width] if corner + width <= self.axes.across.end + EDGE else [corner - width]
        return clearest((Rect(left, below - 22, left + width, below) for left in lefts), self.marks)


def _ceiling_words(target: Target, model: RooflinePoint, name: str) -> tuple[str, str, str]:
    """The name of a dashed ceiling with what it follows from, a short one, and one of a word."""
    if name == model.link:
        host = name.removeprefix("the ")
        return f"{host}, busy for {counted(model.link_cycles, 'cycle')}", host, host.split()[-1] if name == LINK else "host"
    if name == UNIT:
        return f"activation unit, busy for {counted(model.unit_cycles, 'cycle')}", "activation unit", "activation"
    held = percent(model.roofs(target)[name], target.peak_ops)
    return f"matrix unit, {held} of its cells hold weights", f"{held} of the cells", "cells"


def _corner(target: Target, axes: Axes) -> Point:
    return axes.point(ridge(target), target.peak_ops)


def _foot(target: Target, axes: Axes) -> Point:
    """Where the slope leaves the picture, at the left or at the bottom."""
    lowest = 10.0 ** max(axes.across.low, axes.up.low - math.log10(2.0 * target.weight_bandwidth))
    return axes.point(lowest, 2.0 * lowest * target.weight_bandwidth)


def name_on_slope(target: Target, axes: Axes, marks: Sequence[Rect]) -> tuple[Point, float]:
    """The place on the slope, and the height above it, where words lie on the fewest marks and, from a quarter to three quarters of it, are
    the farthest from all. Where each has marks, also places all along it, higher, and below it."""
    start, end = _foot(target, axes), _corner(target, axes)
    roof = Ceilings(target, axes, start, marks=marks).roof

    def at(share: float) -> Point:
        return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share

    def covered(place: tuple[Point, float]) -> int:
        along = Ceilings(target, axes, *place).along
        outside = any(spot.left < LEFT for spot in along)
        return sum(any(map(mark.meets, along)) for mark in marks) + outside + 10 * any(map(roof.meets, along))

    def freedom(place: tuple[Point, float]) -> tuple[int, float]:
        return -covered(place), min([math.dist(place[0], mark.middle) for mark in marks], default=0.0)

    best = max(((at(share), 0.0) for share in (0.5, 0.25, 0.375, 0.625, 0.75)), key=freedom)
    half = text_width(Ceilings(target, axes, start).bandwidth, SMALL) / 2 / math.dist(start, end)
    if half > 0.5 or not covered(best):
        return best
    shares = [half + step * (1 - 2 * half) / GRAINS for step in range(GRAINS + 1)]
    return min([best, *((at(share), lift) for lift in (0.0, LIFT, BELOW) for share in shares)], key=covered)
