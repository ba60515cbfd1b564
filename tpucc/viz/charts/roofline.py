"""The roofline: how far each layer is from what the target could do at its intensity.

As in the TPU paper, intensity counts multiply-accumulates for each byte of weights that is read: Jouppi et al., 2017, figure 5, after
Williams, Waterman and Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

from tpucc.diagnostics import counted, listed, percent
from tpucc.target import Target
from tpucc.values import dataclass
from tpucc.viz.charts.beside import NAME, Room, clearest
from tpucc.viz.charts.chart import WIDTH, Scale
from tpucc.viz.charts.pointnames import NamedPoint, names_of_points
from tpucc.viz.heading import EDGE, HALO, heading
from tpucc.viz.palette import Kind, ink_line, kind_paint, solid_paint
from tpucc.viz.rect import Point, Rect
from tpucc.viz.svg import NOTHING, Markup, joined, label, line, number_text, picture, tag, title
from tpucc.viz.text import SMALL, number, rate_text, shown, text_width

HEIGHT, LEFT = 400.0, 92.0
FULL = 0.995
"""From this share on the cells count as full."""
NUMBER = 40.0
"""The room of a number of the axis of intensities."""
LIFT = 8.0
"""So many pixels higher the names of the two ceilings may stand: points on the ceiling are then below them."""
BELOW = -24.0
"""The same of the slope's name where it stands below the slope."""
GRAINS = 24
"""Places on the slope that are tried for its name where the usual ones have points."""
COVERED, SHORTER, UNDER = 4, (0.0, 0.3, 1.7, 2.5), 0.2
"""What it costs if words lie on a point or on others, if they are the long ones, the short ones, one, or one without the rate, which the
subtitle has, and if they stand under their line."""
KEY = "roofline"
READING = "Operations a second, and what the machine allows."
ABOVE = " Above the roof: weights fetched in other layers' time."
BEFORE = "\nabove the roof, as its weights are fetched in other layers' time"
LINK, HOST, CELLS, UNIT = "the host link", "the host and its link", "the cells that hold weights", "the activation unit"
BOTTLENECKS_OF = {
    "the matrix unit": ("matrix unit",),
    CELLS: ("matrix unit",),
    "weight memory": ("weight memory",),
    LINK: ("host link",),
    HOST: ("host link", "host work"),
    UNIT: ("activation",),
}
"""The bottlenecks that each roof is the limit of."""
KEPT = " Not drawn: layers that fetch no tiles, as an earlier layer did or the activation unit computes them{}."
MOVING = " Not drawn: layers whose tiles only move values, as none of the model's multiply-accumulates are theirs."
STARRED = "; the star has their {} of the multiply-accumulates, too"


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a model: its bottleneck, the percentage of the critical path that this takes, and the share of the matrix unit's cells
    that hold weights of the model while it multiplies."""

    name: str
    share: float
    fill: float = 1.0


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The work of a layer or a whole model on one core: multiply-accumulates, bytes of weights that it reads, and the cycles it takes.

    `layer` is the layer's number in the program; of the model -1. `link_cycles` is how long the host link is busy with the model, the
    latency of each transfer included; of a layer 0. In these cycles the host computes steps, too, where there are `host_steps`.
    `unit_cycles` is how long the activation unit computes rows for the model. `limited` is the model's.
    """

    name: str
    macs: int
    weight_bytes: int
    cycles: int
    layer: int = -1
    link_cycles: int = 0
    host_steps: int = 0
    unit_cycles: int = 0
    limited: Limit | None = None

    @property
    def intensity(self) -> float:
        return self.macs / self.weight_bytes

    def rate(self, target: Target) -> float:
        """Operations a second: two a multiply-accumulate."""
        return 2.0 * self.macs * target.clock_hz / self.cycles

    @property
    def link(self) -> str:
        """The name of the link's roof."""
        return HOST if self.host_steps else LINK

    def roofs(self, target: Target) -> dict[str, float]:
        """The operations a second that each part of the machine allows (Williams et al., 2009)."""
        found = {"the matrix unit": target.peak_ops, "weight memory": 2.0 * self.intensity * target.weight_bandwidth}
        if self.link_cycles:
            found[self.link] = 2.0 * self.macs * target.clock_hz / self.link_cycles
        if self.limited and self.limited.name == "matrix unit" and self.limited.fill < FULL:
            found[CELLS] = self.limited.fill * target.peak_ops
        if self.unit_cycles and self.limited and self.limited.name == "activation":
            found[UNIT] = 2.0 * self.macs * target.clock_hz / self.unit_cycles
        return found

    def dashed(self, target: Target) -> list[str]:
        """The roofs of the whole model that are drawn for it: its bottleneck's, and the lowest."""
        own = {self.limit(target), self.link if self.limited and self.limited.name in BOTTLENECKS_OF[self.link] else CELLS, UNIT}
        return [name for name in self.roofs(target) if name in own and name in (self.link, CELLS, UNIT)]

    def roof(self, target: Target) -> float:
        """The lowest of its roofs."""
        return min(self.roofs(target).values())

    def limit(self, target: Target) -> str:
        """Whose roof is the lowest."""
        roofs = self.roofs(target)
        return min(roofs, key=lambda name: roofs[name])

    @property
    def drawable(self) -> bool:
        return self.macs > 0 and self.weight_bytes > 0 and self.cycles > 0

    @property
    def moving(self) -> bool:
        """Whether it fetches tiles that are no weights of the model, by which it moves values: it has no multiply-accumulates."""
        return not self.macs and self.weight_bytes > 0

    @property
    def kept(self) -> bool:
        """Whether it fetches no tiles, as an earlier layer did or the vector unit computes it: it has no bytes, and so no intensity."""
        return self.macs > 0 and not self.weight_bytes


@dataclass(frozen=True, slots=True)
class _Axes:
    """Logarithmic axes."""

    across: Scale
    up: Scale

    def point(self, intensity: float, rate: float) -> tuple[float, float]:
        return self.across(math.log10(intensity)), self.up(math.log10(rate))


def roofline_svg(
    target: Target, model: RooflinePoint, layers: Sequence[RooflinePoint], width: float = WIDTH, height: float = HEIGHT
) -> str:
    """The target's two ceilings, each layer as a point, the model as a star; both axes logarithmic. `height` is that of the axis.

    Where the host link, the activation unit or cells without weights limit the model, these are dashed ceilings.
    """
    hidden = [layer for layer in layers if layer.kept]
    starred = STARRED.format(percent(sum(layer.macs for layer in hidden), model.macs)) if model.drawable else ""
    kept = (KEPT.format(starred) if hidden else "") + (MOVING if any(layer.moving for layer in layers) else "")
    layers = [layer for layer in layers if layer.drawable]
    drawn = [*layers, *([model] if model.drawable else [])]
    dashed = model.dashed(target) if model.drawable else []
    above = ABOVE if any(_is_above(target, work) for work in drawn) else ""
    head = heading(_title(target, model), READING + above + _dashed_words(target, model, dashed) + kept, (), most=width - 2 * EDGE)
    top = EDGE + head.height + 20
    bottom = top + height
    axes = _axes(target, drawn, (top, bottom), width - EDGE)
    places = [axes.point(work.intensity, work.rate(target)) for work in drawn]
    marks = [Rect(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    if model.drawable:
        x, y = places[-1]
        marks[-1] = Rect(x - 10, y - 10, x + 10, y + 10)
    ceilings = _Ceilings(target, axes, *_named(target, axes, marks), model if dashed else None, marks)
    room = Room(Rect(LEFT, top - 8, width - EDGE, bottom), ceilings.taken(), marks, ceilings.words())
    points = [_point(target, axes, layer) for layer in _apart(target, axes, layers)]
    star = _star(target, axes, model, room) if model.drawable else NOTHING
    named = [NamedPoint(layer.name, axes.point(layer.intensity, layer.rate(target)), layer.cycles) for layer in layers]
    names = names_of_points(named, room, bottom + 58)
    parts = [head.markup, _grid(axes), ceilings.lines(), names.markup, *points, star, ceilings.names()]
    return picture(KEY, _title(target, model), width, bottom + 52 + names.height, *parts)


def ridge(target: Target) -> float:
    """The intensity from which on the matrix unit, not weight memory, is the limit: about 1,350 on TPU v1."""
    return target.peak_ops / 2.0 / target.weight_bandwidth


def bandwidth_text(rate: float) -> str:
    """`34 GB/s`, `2 MB/s`."""
    unit, factor = next(((unit, factor) for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if rate >= factor), ("B", 1.0))
    return f"{number(float(f'{rate / factor:.3g}'))} {unit}/s"


def _title(target: Target, model: RooflinePoint) -> str:
    if not model.drawable:
        return f"{model.name}: no matrix products, so no point on the roofline"
    rate, roof, limit = model.rate(target), model.roof(target), model.limit(target)
    ending = " at its intensity" if limit in ("the matrix unit", "weight memory") else ""
    words = f"{model.name}: {rate_text(rate)}, {percent(rate, roof)} of the {rate_text(roof)} that {limit} {_allow(limit)}{ending}"
    found = model.limited
    if found is None or found.name in BOTTLENECKS_OF[limit]:
        return words
    return f"{words}; bottleneck: {found.name}, {found.share:.1f} % of the critical path"


def _allow(limit: str) -> str:
    return "allow" if limit in (CELLS, HOST) else "allows"


def _dashed_words(target: Target, model: RooflinePoint, names: Sequence[str]) -> str:
    """What the dashed ceilings are, with their rates: on a small picture their names may have no room."""
    if not names:
        return ""
    roofs = model.roofs(target)
    if len(names) == 1:
        return f" Dashed: the most that {names[0]} {_allow(names[0])} the whole model, {rate_text(roofs[names[0]])}."
    return f" Dashed: the most that {listed([f'{name} ({rate_text(roofs[name])})' for name in names])} allow the whole model."


def _axes(target: Target, works: Sequence[RooflinePoint], down: tuple[float, float], right: float) -> _Axes:
    """`down` is where the axis of rates begins and ends, `right` where that of intensities ends."""
    intensities = [ridge(target), *(work.intensity for work in works)]
    roofs = [work.roofs(target)[name] for work in works for name in work.dashed(target)]
    rates = [target.peak_ops, *(work.rate(target) for work in works), *roofs]
    low, high = math.floor(math.log10(min(intensities)) - 0.3), math.ceil(math.log10(max(intensities)) + 0.3)
    bottom, ceiling = math.floor(math.log10(min(rates)) - 0.3), math.log10(max(target.peak_ops, *roofs, 1.0)) + 0.25
    return _Axes(Scale(low, high, LEFT, right), Scale(bottom, ceiling, down[1], down[0]))


def _grid(axes: _Axes) -> Markup:
    parts, top, below = [], axes.up.end, axes.up.start
    powers = range(math.ceil(axes.across.low), math.floor(axes.across.high) + 1)
    every = math.ceil(NUMBER * len(powers) / (axes.across.end - LEFT))
    for power in powers:
        x = axes.across(power)
        parts += [line(x, top, x, below, "grid")]
        text = number(10.0**power)
        last = axes.across.end + EDGE - 4 - text_width(text, SMALL) / 2
        parts += [] if power % every else [label(text, min(x, last), below + 18, anchor="middle")]
    for power in range(math.ceil(axes.up.low), math.floor(axes.up.high) + 1):
        y = axes.up(power)
        parts += [line(LEFT, y, axes.across.end, y, "grid"), label(rate_text(10.0**power), LEFT - 8, y + 4, anchor="end")]
    middle = (LEFT + axes.across.end) / 2
    parts += [label("multiply-accumulates for each byte of weights", middle, below + 38, SMALL, "soft", "middle")]
    return joined(parts)


@dataclass(frozen=True)
class _Ceilings:
    """Weight memory's slope up to the ridge, and the matrix unit's flat roof. `named` is the place on the slope where its name stands.

    What words are kept away from is found once: a dashed ceiling asks for it at each of a hundred places where its words could stand.
    """

    target: Target
    axes: _Axes
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


def _corner(target: Target, axes: _Axes) -> Point:
    return axes.point(ridge(target), target.peak_ops)


def _foot(target: Target, axes: _Axes) -> Point:
    """Where the slope leaves the picture, at the left or at the bottom."""
    lowest = 10.0 ** max(axes.across.low, axes.up.low - math.log10(2.0 * target.weight_bandwidth))
    return axes.point(lowest, 2.0 * lowest * target.weight_bandwidth)


def _named(target: Target, axes: _Axes, marks: Sequence[Rect]) -> tuple[Point, float]:
    """The place on the slope, and the height above it, where words lie on the fewest marks and, from a quarter to three quarters of it, are
    the farthest from all. Where each has marks, also places all along it, higher, and below it."""
    start, end = _foot(target, axes), _corner(target, axes)
    roof = _Ceilings(target, axes, start, marks=marks).roof

    def at(share: float) -> Point:
        return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share

    def covered(place: tuple[Point, float]) -> int:
        along = _Ceilings(target, axes, *place).along
        outside = any(spot.left < LEFT for spot in along)
        return sum(any(map(mark.meets, along)) for mark in marks) + outside + 10 * any(map(roof.meets, along))

    def freedom(place: tuple[Point, float]) -> tuple[int, float]:
        return -covered(place), min([math.dist(place[0], mark.middle) for mark in marks], default=0.0)

    best = max(((at(share), 0.0) for share in (0.5, 0.25, 0.375, 0.625, 0.75)), key=freedom)
    half = text_width(_Ceilings(target, axes, start).bandwidth, SMALL) / 2 / math.dist(start, end)
    if half > 0.5 or not covered(best):
        return best
    shares = [half + step * (1 - 2 * half) / GRAINS for step in range(GRAINS + 1)]
    return min([best, *((at(share), lift) for lift in (0.0, LIFT, BELOW) for share in shares)], key=covered)


def _is_above(target: Target, work: RooflinePoint) -> bool:
    """Whether a layer does more than its weights' fetches allow: they took place in another layer's time."""
    return work.rate(target) > 1.02 * work.roof(target)


def _words(target: Target, work: RooflinePoint) -> str:
    rate = rate_text(work.rate(target))
    above = BEFORE if _is_above(target, work) else ""
    return f"{shown(work.name)}\n{rate} at {number(float(f'{work.intensity:.4g}'))} MACs a byte · {counted(work.cycles, 'cycle')}{above}"


def _apart(target: Target, axes: _Axes, layers: Sequence[RooflinePoint]) -> list[list[RooflinePoint]]:
    """The layers, those that would be drawn on the very same pixel together."""
    pixels: dict[tuple[int, int], list[RooflinePoint]] = {}
    for layer in layers:
        x, y = axes.point(layer.intensity, layer.rate(target))
        pixels.setdefault((round(x), round(y)), []).append(layer)
    return list(pixels.values())


def _point(target: Target, axes: _Axes, works: Sequence[RooflinePoint]) -> Markup:
    x, y = axes.point(works[0].intensity, works[0].rate(target))
    words = title(_words(target, works[0]))
    stands_for = " ".join(str(work.layer) for work in works if work.layer >= 0) or None
    paint = kind_paint(Kind.MATRIX)
    return tag("circle", words, attributes=paint, cx=x, cy=y, r=5, stroke_width=1.5, data_layers=stands_for)


def _star(target: Target, axes: _Axes, model: RooflinePoint, room: Room) -> Markup:
    x, y = axes.point(model.intensity, model.rate(target))
    corners = []
    for tip in range(10):
        radius, angle = (10.0 if tip % 2 == 0 else 4.2), math.pi * (tip / 5 - 0.5)
        corners.append(f"{number_text(x + radius * math.cos(angle))},{number_text(y + radius * math.sin(angle))}")
    shape = tag("polygon", title(_words(target, model)), attributes=solid_paint(Kind.MATRIX), points=" ".join(corners))
    names = (f"{shown(model.name)}, all layers", "all layers")
    placed = (room.place(words, (x, y), 14, bold=True) for words in names)
    return joined([next(filter(None, placed), NOTHING), shape])
