"""The roofline: how far each layer is from what the target could do at its intensity.

As in the TPU paper, intensity counts multiply-accumulates for each byte of weights that is read: Jouppi et al., 2017, figure 5, after
Williams, Waterman and Patterson, "Roofline", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import counted
from tpucc.explain.names import shown
from tpucc.explain.quantities import bandwidth_text, number, rate_text
from tpucc.explain.roofs import BOTTLENECKS_OF, CELLS, HOST, LINK, UNIT, RooflinePoint, allow, ridge
from tpucc.prose import percent
from tpucc.see.charts.beside import FEW, NamedPoint, Room, names_of_points, pieces, shared_words
from tpucc.see.charts.chart import WIDTH, Scale, foot_axis, side_axis
from tpucc.see.heading import EDGE, Entry, heading, legend, line_sign, on_paper
from tpucc.see.palette import Kind, ink_line, kind_paint, solid_paint
from tpucc.see.svg import NOTHING, Markup, Rect, Value, centred, joined, label, line, picture, points_text, tag, title
from tpucc.see.text import SMALL
from tpucc.target import Target

LEFT = 92.0
"""Where the axis of intensities begins."""
HEIGHT = 400.0
DECADES = 30
"""Powers of ten that an axis has at most."""
KEY = "roofline"
READING = "Operations a second, and what the machine allows. Larger points take more cycles."
DASHED = " Dashed: ceilings of the whole model."
UNNAMED = "No room for the names of {}: point at them."
PALE = " Pale: the rate is over its weights' fetches, part of which took place in other layers' time."
EARLY = "\nIts weights' fetches take {}, part of them in other layers' time. The rate is over these."
SMALLEST, LARGEST = 4.0, 11.0
"""The radius of the point of a layer that takes no share of the cycles, and of one that takes all of them."""
KEPT = " Not drawn: layers that fetch no tiles, as an earlier layer did or the activation unit computes them{}."
MOVING = " Not drawn: layers whose tiles only move values, as none of the model's multiply-accumulates are theirs."
STARRED = "; the star has their {} of the multiply-accumulates, too"


@dataclass(frozen=True, slots=True)
class Axes:
    """Logarithmic axes."""

    across: Scale
    up: Scale

    def point(self, intensity: float, rate: float) -> tuple[float, float]:
        """Where a point stands, in pixels, by its multiply-accumulates for each byte and its operations a second."""
        return self.across(intensity), self.up(rate)


def roofline_svg(
    target: Target, model: RooflinePoint, layers: Sequence[RooflinePoint], width: float = WIDTH, height: float = HEIGHT
) -> str:
    """The target's two ceilings, each layer as a point, the model as a star; both axes logarithmic. `height` is the height of the axis.

    Where the host link, the activation unit or cells without weights limit the model, these are dashed ceilings. A legend names all lines.
    """
    hidden = [layer for layer in layers if layer.kept]
    starred = STARRED.format(percent(sum(layer.macs for layer in hidden), model.macs)) if model.drawable else ""
    kept = (KEPT.format(starred) if hidden else "") + (MOVING if any(layer.moving for layer in layers) else "")
    layers = [layer for layer in layers if layer.drawable]
    drawn = [*layers, *([model] if model.drawable else [])]
    pale = PALE if any(work.is_fetched_early(target) for work in drawn) else ""
    head = heading(_title(target, model), READING + (DASHED if model.dashed(target) else "") + pale + kept, (), most=width - 2 * EDGE)
    has_gaps = len(drawn) <= FEW
    key = legend(_signs(target, model, has_gaps=has_gaps), EDGE, EDGE + head.height - 6, width - EDGE)
    top = EDGE + head.height + key.height + 14
    bottom = top + height
    axes = _axes(target, drawn, (top, bottom), width - EDGE)
    places = [axes.point(work.intensity, work.rate(target)) for work in drawn]
    sizes = [_radius(layer, model) + 2 for layer in layers] + [10.0] * model.drawable
    marks = [centred(x, y, (2 * size, 2 * size)) for (x, y), size in zip(places, sizes, strict=True)]
    gaps = [_gap(target, axes, work) for work in drawn] if has_gaps else []
    room = Room(Rect(LEFT, top - 8, width - EDGE, bottom), [], marks)
    lines = _ceilings(target, axes, model, room)
    points = [_point(target, axes, same, model) for same in _apart(target, axes, layers)]
    star = _star(target, axes, model, room) if model.drawable else NOTHING
    named = [NamedPoint(layer.name, place, layer.cycles, size + 2) for layer, place, size in zip(layers, places, sizes, strict=False)]
    names, unnamed = names_of_points(named, room)
    note = label(UNNAMED.format(counted(unnamed, "layer")), EDGE, bottom + 58, SMALL, "soft") if unnamed else NOTHING
    parts = [head.markup, key.markup, _grid(axes), *gaps, lines, names, note, *points, star]
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


def _axes(target: Target, works: Sequence[RooflinePoint], down: tuple[float, float], right: float) -> Axes:
    """`down` is where the axis of rates begins and ends, `right` where the axis of intensities ends."""
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


def _words(target: Target, work: RooflinePoint, name: str) -> str:
    rate, roof, limit = work.rate(target), work.roof(target), work.limit(target)
    early = EARLY.format(counted(round(work.fetch_cycles(target)), "cycle")) if work.is_fetched_early(target) else ""
    at = f"{rate_text(rate)} at {number(float(f'{work.intensity:.4g}'))} MACs a byte · {counted(work.cycles, 'cycle')}"
    return f"{name}\n{at}\n{percent(rate, roof)} of the {rate_text(roof)} that {limit} {allow(limit)}{early}"


def _apart(target: Target, axes: Axes, layers: Sequence[RooflinePoint]) -> list[list[RooflinePoint]]:
    """The layers, those that would be drawn on the very same pixel together. Those of most cycles come first, below the others."""
    pixels: dict[tuple[int, int], list[RooflinePoint]] = {}
    for layer in sorted(layers, key=lambda layer: -layer.cycles):
        x, y = axes.point(layer.intensity, layer.rate(target))
        pixels.setdefault((round(x), round(y)), []).append(layer)
    return list(pixels.values())


def _radius(work: RooflinePoint, model: RooflinePoint) -> float:
    """The circle's area grows with the share of the cycles."""
    return SMALLEST + (LARGEST - SMALLEST) * math.sqrt(min(1.0, work.cycles / model.cycles))


def _gap(target: Target, axes: Axes, work: RooflinePoint) -> Markup:
    """A thin line from a point up to the lowest of its roofs."""
    x, y = axes.point(work.intensity, work.rate(target))
    return line(x, y, x, axes.up(work.roof(target)), "rule")


def _point(target: Target, axes: Axes, works: Sequence[RooflinePoint], model: RooflinePoint) -> Markup:
    largest = works[0]
    x, y = axes.point(largest.intensity, largest.rate(target))
    words = title(_words(target, largest, shared_words([shown(work.name) for work in works])))
    stands_for = " ".join(str(layer) for layer in sorted(work.layer for work in works) if layer >= 0) or None
    paint: Mapping[str, Value] = kind_paint(Kind.MATRIX) if largest.is_fetched_early(target) else on_paper(solid_paint(Kind.MATRIX))
    return tag("circle", words, attributes=paint, cx=x, cy=y, r=_radius(largest, model), stroke_width=1.5, data_layers=stands_for)


def _star(target: Target, axes: Axes, model: RooflinePoint, room: Room) -> Markup:
    x, y = axes.point(model.intensity, model.rate(target))
    corners = []
    for tip in range(10):
        radius, angle = (10.0 if tip % 2 == 0 else 4.2), math.pi * (tip / 5 - 0.5)
        corners.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    about = title(_words(target, model, shown(model.name)))
    shape = tag("polygon", about, attributes=solid_paint(Kind.MATRIX), points=points_text(corners))
    names = (f"{shown(model.name)}, all layers", "all layers")
    placed = (room.place(words, (x, y), 14, bold=True) for words in names)
    return joined([next(filter(None, placed), NOTHING), shape])


DASHES = {LINK: "7 4", HOST: "7 4", CELLS: "2 3", UNIT: "10 3 2 3"}
"""The dashes of each ceiling of the whole model."""


def _ceilings(target: Target, axes: Axes, model: RooflinePoint, room: Room) -> Markup:
    """Weight memory's slope, the matrix unit's roof, and dashed ceilings of the whole model. Names of points keep off them."""
    end, below = axes.across.end, axes.up.start
    corner = axes.point(ridge(target, model.bytes_per_value), model.peak(target))
    lowest = max(axes.across.low, axes.up.low / (2.0 * target.weight_bandwidth))
    foot = axes.point(lowest, 2.0 * lowest * target.weight_bandwidth)
    points = points_text((foot, corner, (end, corner[1])))
    lines = [line(*corner, corner[0], below, "rule", stroke_dasharray="4 4")]
    lines.append(tag("polyline", attributes=ink_line("ink"), points=points, stroke_width=2))
    roofs = [(corner[0], corner[1])]
    for name in model.dashed(target):
        height = axes.up(model.roofs(target)[name])
        lines.append(line(LEFT, height, end, height, "ink", stroke_width=1.5, stroke_dasharray=DASHES[name]))
        roofs.append((LEFT, height))
    under = Rect(corner[0] - 3, corner[1], corner[0] + 3, below)
    room.taken.extend([*pieces(foot, corner), under, *(Rect(left, y - 3, end, y + 3) for left, y in roofs)])
    return joined(lines)


def _signs(target: Target, model: RooflinePoint, *, has_gaps: bool) -> Iterator[Entry]:
    """The lines with their names and rates."""
    yield line_sign("ink", 10.0, stroke_width=2), f"weight memory: {bandwidth_text(target.weight_bandwidth)}"
    yield line_sign("ink", stroke_width=2), f"matrix unit: {rate_text(model.peak(target))}"
    yield line_sign("rule", stroke_dasharray="4 4"), f"ridge {number(round(ridge(target, model.bytes_per_value)))}"
    if has_gaps:
        yield line_sign("rule"), "from a point to the lowest of its roofs"
    for name in model.dashed(target):
        rate = rate_text(model.roofs(target)[name])
        yield line_sign("ink", stroke_width=1.5, stroke_dasharray=DASHES[name]), f"{_ceiling_words(target, model, name)}: {rate}"


def _ceiling_words(target: Target, model: RooflinePoint, name: str) -> str:
    """The name of a dashed ceiling, with what it follows from."""
    if name == model.link:
        return f"{name.removeprefix('the ')}, busy for {counted(model.link_cycles, 'cycle')}"
    if name == UNIT:
        return f"activation unit, busy for {counted(model.unit_cycles, 'cycle')}"
    return f"matrix unit, {percent(model.roofs(target)[name], model.peak(target))} of its cells hold weights"
