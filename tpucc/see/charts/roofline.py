"""The roofline: how far each layer is from what the target could do at its intensity.

As in the TPU paper, intensity counts multiply-accumulates for each byte of weights that is read: Jouppi et al., 2017, figure 5, after
Williams, Waterman and Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted, listed
from tpucc.explain.names import shown
from tpucc.explain.quantities import number, rate_text
from tpucc.explain.roofs import BOTTLENECKS_OF, LINK, UNIT, RooflinePoint, allow, bandwidth_text, is_above, ridge
from tpucc.prose import percent
from tpucc.see.charts.beside import NAME, NamedPoint, Room, names_of_points
from tpucc.see.charts.chart import WIDTH, Scale, foot_axis, side_axis
from tpucc.see.heading import EDGE, HALO, heading
from tpucc.see.palette import Kind, ink_line, kind_paint, solid_paint
from tpucc.see.svg import NOTHING, Markup, Point, Rect, centred, joined, label, line, number_text, picture, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.target import Target

HEIGHT = 400.0
DECADES = 30
"""Powers of ten that an axis has at most."""
KEY = "roofline"
READING = "Operations a second, and what the machine allows."
UNNAMED = "No room for the names of {}: point at them."
ABOVE = " Above the roof: weights fetched in other layers' time."
BEFORE = "\nabove the roof, as its weights are fetched in other layers' time"
KEPT = " Not drawn: layers that fetch no tiles, as an earlier layer did or the activation unit computes them{}."
MOVING = " Not drawn: layers whose tiles only move values, as none of the model's multiply-accumulates are theirs."
STARRED = "; the star has their {} of the multiply-accumulates, too"


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
    above = ABOVE if any(is_above(target, work) for work in drawn) else ""
    head = heading(_title(target, model), READING + above + _dashed_words(target, model, dashed) + kept, (), most=width - 2 * EDGE)
    top = EDGE + head.height + 20
    bottom = top + height
    axes = _axes(target, drawn, (top, bottom), width - EDGE)
    places = [axes.point(work.intensity, work.rate(target)) for work in drawn]
    marks = [Rect(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    if model.drawable:
        x, y = places[-1]
        marks[-1] = Rect(x - 10, y - 10, x + 10, y + 10)
    room = Room(Rect(LEFT, top - 8, width - EDGE, bottom), [], marks)
    lines, roofs = ceilings(target, axes, model if dashed else None, room)
    points = [_point(target, axes, layer) for layer in _apart(target, axes, layers)]
    star = _star(target, axes, model, room) if model.drawable else NOTHING
    named = [NamedPoint(layer.name, axes.point(layer.intensity, layer.rate(target)), layer.cycles) for layer in layers]
    names, unnamed = names_of_points(named, room)
    note = label(UNNAMED.format(counted(unnamed, "layer")), EDGE, bottom + 58, SMALL, "soft") if unnamed else NOTHING
    parts = [head.markup, _grid(axes), lines, names, note, *points, star, roofs]
    return picture(KEY, _title(target, model), width, bottom + (68 if unnamed else 52), *parts)


def _title(target: Target, model: RooflinePoint) -> str:
    if not model.drawable:
        return f"{model.name}: no matrix products, so no point on the roofline"
    rate, roof, limit = model.rate(target), model.roof(target), model.limit(target)
    ending = " at its intensity" if limit in ("the matrix unit", "weight memory") else ""
    words = f"{model.name}: {rate_text(rate)}, {percent(rate, roof)} of the {rate_text(roof)} that {limit} {allow(limit)}{ending}"
    found = model.limited
    if found is None or found.name in BOTTLENECKS_OF[limit]:
        return words
    return f"{words}; bottleneck: {found.name}, {found.share:.1f} % of the critical path"


def _dashed_words(target: Target, model: RooflinePoint, names: Sequence[str]) -> str:
    """What the dashed ceilings are, with their rates: on a small picture their names may have no room."""
    if not names:
        return ""
    roofs = model.roofs(target)
    if len(names) == 1:
        return f" Dashed: the most that {names[0]} {allow(names[0])} the whole model, {rate_text(roofs[names[0]])}."
    return f" Dashed: the most that {listed([f'{name} ({rate_text(roofs[name])})' for name in names])} allow the whole model."


def _axes(target: Target, works: Sequence[RooflinePoint], down: tuple[float, float], right: float) -> Axes:
    """`down` is where the axis of rates begins and ends, `right` where that of intensities ends."""
    intensities = [ridge(target, max((work.bytes_per_value for work in works), default=1)), *(work.intensity for work in works)]
    roofs = [work.roofs(target)[name] for work in works for name in work.dashed(target)]
    rates = [target.peak_ops, *(work.rate(target) for work in works), *roofs]
    across = 10.0 ** math.floor(math.log10(min(intensities)) - 0.3), 10.0 ** math.ceil(math.log10(max(intensities)) + 0.3)
    up = 10.0 ** math.floor(math.log10(min(rates)) - 0.3), 10.0 ** (math.log10(max(target.peak_ops, *roofs, 1.0)) + 0.25)
    return Axes(Scale(*across, LEFT, right, is_log=True), Scale(*up, down[1], down[0], is_log=True))


def _grid(axes: Axes) -> Markup:
    intensities, rates = (scale.ticks(DECADES) for scale in (axes.across, axes.up))
    words = "multiply-accumulates for each byte of weights"
    foot = foot_axis(axes.across, axes.up.start, words, intensities, [*map(number, intensities)], axes.up.end)
    return joined([foot, side_axis(axes.up, LEFT, axes.across.end, "", rates, [*map(rate_text, rates)])])


def _words(target: Target, work: RooflinePoint) -> str:
    rate = rate_text(work.rate(target))
    above = BEFORE if is_above(target, work) else ""
    return f"{shown(work.name)}\n{rate} at {number(float(f'{work.intensity:.4g}'))} MACs a byte · {counted(work.cycles, 'cycle')}{above}"


def _apart(target: Target, axes: Axes, layers: Sequence[RooflinePoint]) -> list[list[RooflinePoint]]:
    """The layers, those that would be drawn on the very same pixel together."""
    pixels: dict[tuple[int, int], list[RooflinePoint]] = {}
    for layer in layers:
        x, y = axes.point(layer.intensity, layer.rate(target))
        pixels.setdefault((round(x), round(y)), []).append(layer)
    return list(pixels.values())


def _point(target: Target, axes: Axes, works: Sequence[RooflinePoint]) -> Markup:
    x, y = axes.point(works[0].intensity, works[0].rate(target))
    words = title(_words(target, works[0]))
    stands_for = " ".join(str(work.layer) for work in works if work.layer >= 0) or None
    paint = kind_paint(Kind.MATRIX)
    return tag("circle", words, attributes=paint, cx=x, cy=y, r=5, stroke_width=1.5, data_layers=stands_for)


def _star(target: Target, axes: Axes, model: RooflinePoint, room: Room) -> Markup:
    x, y = axes.point(model.intensity, model.rate(target))
    corners = []
    for tip in range(10):
        radius, angle = (10.0 if tip % 2 == 0 else 4.2), math.pi * (tip / 5 - 0.5)
        corners.append(f"{number_text(x + radius * math.cos(angle))},{number_text(y + radius * math.sin(angle))}")
    shape = tag("polygon", title(_words(target, model)), attributes=solid_paint(Kind.MATRIX), points=" ".join(corners))
    names = (f"{shown(model.name)}, all layers", "all layers")
    placed = (room.place(words, (x, y), 14, bold=True) for words in names)
    return joined([next(filter(None, placed), NOTHING), shape])


LEFT = 92.0
"""Where the axis of intensities begins."""
LIFTS = (0.0, 8.0, -24.0)
"""So many pixels higher a name may stand: points on its line are then below it. The last stands below the slope."""
GRAINS = 24
"""Places on the slope that are tried for its name."""
NEAREST = 100.0
"""Of a name on the slope: a mark so far away is as good as none."""
SHORTER, UNDER, COVERED = (0.0, 0.1, 0.4, 0.6), 0.05, 0.95
"""What it costs if the words of a dashed ceiling are the long ones, the short ones, one, or one without the rate, which the subtitle
has; if they stand under their line; and the cost of lying on a point or on others, from which on there are none."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Logarithmic axes."""

    across: Scale
    up: Scale

    def point(self, intensity: float, rate: float) -> tuple[float, float]:
        return self.across(intensity), self.up(rate)


def ceilings(target: Target, axes: Axes, model: RooflinePoint | None, room: Room) -> tuple[Markup, Markup]:
    """The lines, and their names, which stand where few points are and are drawn over them. `model` has dashed ceilings. All places are
    taken in `room` from then on."""
    size = model.bytes_per_value if model is not None else 1
    peak, own_ridge = target.peak_ops / size, ridge(target, size)
    corner, end, below = axes.point(own_ridge, peak), axes.across.end, axes.up.start
    lowest = max(axes.across.low, axes.up.low / (2.0 * target.weight_bandwidth))
    foot = axes.point(lowest, 2.0 * lowest * target.weight_bandwidth)
    dashed = {name: axes.up(model.roofs(target)[name]) for name in model.dashed(target)} if model is not None else {}
    points = " ".join(f"{number_text(x)},{number_text(y)}" for x, y in (foot, corner, (end, corner[1])))
    lines = [line(*corner, corner[0], below, "rule", stroke_dasharray="4 4")]
    lines.append(tag("polyline", attributes=ink_line("ink"), points=points, stroke_width=2))
    lines += [line(LEFT, height, end, height, "ink", stroke_width=1.5, stroke_dasharray="7 4") for height in dashed.values()]
    steps = [share / 100 for share in range(101)]
    slope = [centred(foot[0] + (corner[0] - foot[0]) * t, foot[1] + (corner[1] - foot[1]) * t, (6, 6)) for t in steps]
    under = Rect(corner[0] - 3, corner[1], corner[0] + 3, below)
    roofs = [*dashed.values(), corner[1]]
    room.taken.extend([*slope, under, *(Rect(LEFT if y != corner[1] else corner[0], y - 3, end, y + 3) for y in roofs)])
    names = [_roof_name(peak, corner, end, room), _ridge_name(own_ridge, corner, end, below, room), _slope_name(target, foot, corner, room)]
    if model is not None:
        names += [name for key, y in dashed.items() for name in _dashed_name(target, model, key, y, end, slope, under, room)]
    return joined(lines), joined(names)


def _roof_name(peak: float, corner: Point, end: float, room: Room) -> Markup:
    """Above the matrix unit's roof, as far to the right and as low as points allow; half of the words at least are above the roof."""
    words = f"matrix unit: {rate_text(peak)}"
    width, y = text_width(words, SMALL), corner[1]
    rights = (end - step for step in range(0, max(1, int(end - width / 2 - corner[0])), 8))
    places = (Rect(right - width, y - 20 - lift, right, y - 3 - lift) for right in rights for lift in LIFTS[:2])
    _, place = room.clearest((0.0, [place], place) for place in places)
    return label(words, place.right, place.bottom - 5, SMALL, "ink", "end", **NAME)


def _ridge_name(own_ridge: float, corner: Point, end: float, below: float, room: Room) -> Markup:
    """Right of the ridge, or left of it where there is no room or a point."""
    words = f"ridge {number(round(own_ridge))}"
    width = text_width(words, SMALL) + 12
    lefts = [corner[0]] if corner[0] + width <= end + EDGE else []
    places = (Rect(left, below - 22, left + width, below) for left in (*lefts, corner[0] - width))
    _, place = room.clearest((0.0, [place], place) for place in places)
    return label(words, place.left + 6, below - 8, SMALL, "soft", "start", **{**NAME, **HALO})


def _slope_name(target: Target, start: Point, end: Point, room: Room) -> Markup:
    """Along weight memory's slope, above it or below, as far from points as there is room."""
    words, turn = f"weight memory: {bandwidth_text(target.weight_bandwidth)}", math.atan2(end[1] - start[1], end[0] - start[0])
    half, along = text_width(words, SMALL) / 2, (math.cos(turn), math.sin(turn))

    def places() -> Iterator[tuple[float, list[Rect], tuple[Point, float]]]:
        for lift in LIFTS:
            for share in (step / GRAINS for step in range(4, GRAINS - 3)):
                x, y = start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share
                middle = x + (12 + lift) * along[1], y - (12 + lift) * along[0]
                offsets = [step - half for step in range(0, int(2 * half) + 1, 6)]
                spots = [centred(middle[0] + d * along[0], middle[1] + d * along[1], (14, 14)) for d in offsets]
                near = min([math.dist((x, y), mark.middle) for mark in room.marks], default=NEAREST)
                outside = any(spot.left < LEFT for spot in spots)
                yield outside + (abs(share - 0.5) + abs(lift) / 100 - min(near, NEAREST) / NEAREST) / 10, spots, ((x, y), lift)

    _, ((x, y), lift) = room.clearest(places())
    turned = f"rotate({math.degrees(turn):.2f} {x:.1f} {y:.1f})"
    return label(words, x, y - 8 - lift, SMALL, "ink", "middle", transform=turned, **NAME)


def _dashed_name(
    target: Target, model: RooflinePoint, name: str, height: float, end: float, slope: Sequence[Rect], under: Rect, room: Room
) -> list[Markup]:
    """The words of a dashed ceiling above or below it, as far to the right as they lie on nothing; none where they would."""
    words, rate = _ceiling_words(target, model, name), rate_text(model.roofs(target)[name])
    texts = [*(f"{text}: {rate}" for text in words), words[-1]]

    def places() -> Iterator[tuple[float, list[Rect], tuple[str, Rect]]]:
        for text, shorter in zip(texts, SHORTER, strict=True):
            width = text_width(text, SMALL)
            for x in (*(end - width - step for step in range(0, int(end - width - LEFT), 8)), LEFT + 2):
                for place, lower in (
                    (Rect(x, height - 18, x + width, height - 3), 0.0),
                    (Rect(x, height + 2, x + width, height + 17), UNDER),
                ):
                    crossing = 0.5 * any(map(place.meets, slope)) + 0.25 * place.meets(under) + (x < LEFT)
                    yield shorter + lower + crossing, [place], (text, place)

    free = Room(room.area, [], room.marks, [*room.words])
    cost, (text, place) = free.clearest(places())
    if cost >= COVERED:
        return []
    room.words.append(place)
    room.taken.append(place)
    return [label(text, place.right, place.top + 12, SMALL, "ink", "end", **NAME)]


def _ceiling_words(target: Target, model: RooflinePoint, name: str) -> tuple[str, str, str]:
    """The name of a dashed ceiling with what it follows from, a short one, and one of a word."""
    if name == model.link:
        host = name.removeprefix("the ")
        return f"{host}, busy for {counted(model.link_cycles, 'cycle')}", host, host.split()[-1] if name == LINK else "host"
    if name == UNIT:
        return f"activation unit, busy for {counted(model.unit_cycles, 'cycle')}", "activation unit", "activation"
    held = percent(model.roofs(target)[name], model.peak(target))
    return f"matrix unit, {held} of its cells hold weights", f"{held} of the cells", "cells"
