"""The roofline: how far each layer is from what the target could do at its intensity.

As in the TPU paper, intensity counts multiply-accumulates for each byte of weights that is read: Jouppi et al., 2017, figure 5, after
Williams, Waterman and Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tpucc.diagnostics import counted, listed
from tpucc.explain.names import shown
from tpucc.explain.quantities import number, rate_text
from tpucc.explain.roofs import BOTTLENECKS_OF, RooflinePoint, allow, is_above, ridge
from tpucc.prose import percent
from tpucc.see.charts.beside import NamedPoint, Room, names_of_points
from tpucc.see.charts.ceilings import LEFT, Axes, ceilings
from tpucc.see.charts.chart import WIDTH, Scale, foot_axis, side_axis
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind, kind_paint, solid_paint
from tpucc.see.rect import Rect
from tpucc.see.svg import NOTHING, Markup, joined, label, number_text, picture, tag, title
from tpucc.see.text import SMALL
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
