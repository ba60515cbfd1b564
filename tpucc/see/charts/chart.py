"""The common parts of the charts: axes with round numbers, hatching for waits, headings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.critical import Limit
from tpucc.explain.quantities import number, numbers
from tpucc.numerics import Float64, Int64
from tpucc.see.heading import Entry, box_sign
from tpucc.see.palette import KINDS, Kind, solid_paint
from tpucc.see.svg import NOTHING, Markup, Value, joined, label, line, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.sim.durations import seconds_unit

WIDTH = 800.0
"""The width of a chart with its margins, in pixels."""
MARGIN = 20.0
LEAST = 1e-15
"""What a logarithmic scale takes for less: a logarithm has no zero."""
TICK = 70.0
"""The room that a number of the axis of cycles takes at least, in pixels."""


Area = tuple[str, Mapping[str, Value], Float64]
"""What an area stands for, how it is drawn, and its share of the height in each column."""


@dataclass(frozen=True, slots=True)
class Hatch:
    """How a wait is drawn: the hue of its root, the angle of the lines, and whether others cross them. No two roots have the same lines, so
    that the hue isn't needed to tell them apart."""

    kind: Kind
    angle: int
    crossed: bool = False


WAITS: Mapping[Limit, Hatch] = {
    Limit.WEIGHT_MEMORY: Hatch(Kind.WEIGHTS, 45),
    Limit.WEIGHT_SHIFT: Hatch(Kind.WEIGHTS, 0),
    Limit.ACTIVATION: Hatch(Kind.VECTOR, 45, crossed=True),
    Limit.HOST_WORK: Hatch(Kind.HOST, 0, crossed=True),
    Limit.HOST_LINK: Hatch(Kind.HOST, 135),
    Limit.DEPENDENCIES: Hatch(Kind.MATRIX, 90),
}
"""The roots of the matrix unit's waits, with their hatchings; `ROWS` has their names."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to a place: `low` at `start`, `high` at `end`. It is linear, or goes by the logarithms of values."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def worth(self, pixels: float) -> float:
        """How much so many pixels of a linear scale stand for."""
        return pixels * (self.high - self.low) / (self.end - self.start)

    def __call__(self, value: float) -> float:
        low, high, at = map(_log, (self.low, self.high, value)) if self.is_log else (self.low, self.high, value)
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 8) -> list[float]:
        """Round values that the scale has, at most about so many: from 0 on, or on a logarithmic one powers of ten, or parts of them."""
        if not self.is_log:
            return [value for value in ticks(self.high, most) if value >= self.low]
        tens = range(math.floor(_log(self.low)), math.ceil(_log(self.high)) + 1)
        for digits in ((1.0,), (1.0, 2.0, 5.0), [half / 2 for half in range(2, 20)]):
            found = [digit * 10.0**ten for ten in tens for digit in digits if self.low <= digit * 10.0**ten <= self.high]
            if len(found) >= 3:
                return found[:: math.ceil(len(found) / most)]
        return [float(f"{self.low + (self.high - self.low) * share:.3g}") for share in (0.1, 0.5, 0.9)]


def _log(value: float) -> float:
    return math.log10(max(value, LEAST))


def log_scale(values: Iterable[float], start: float, end: float) -> Scale:
    """A logarithmic scale of these values, with a little room at both ends."""
    logs = [_log(value) for value in values]
    room = 0.06 * (max(logs) - min(logs)) or 0.1
    return Scale(10 ** (min(logs) - room), 10 ** (max(logs) + room), start, end, is_log=True)


def ticks(high: float, most: int = 8) -> list[float]:
    """Round values from 0 to `high`, at most `most` steps: multiples of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10(max(high, 1e-12) / most))
    while high / step > most:
        step *= 2.5 if f"{step:e}".startswith("2") else 2.0
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def foot_axis(scale: Scale, y: float, words: str, values: Sequence[float], texts: Sequence[str], top: float | None = None) -> Markup:
    """An axis below a plot: these values with their texts, and what they are. One whose text would touch the one before is left
    out. With `top` the values have lines of a grid up to there."""
    parts, free = [line(scale.start, y, scale.end, y)], -math.inf
    for value, text in zip(values, texts, strict=True):
        x, half = scale(value), text_width(text, SMALL) / 2
        has_room = x - half > free
        parts += [line(x, top, x, y, "grid")] if top is not None else [line(x, y, x, y + 5)] if has_room else []
        if has_room:
            parts.append(label(text, min(x, scale.end + MARGIN - 4 - half), y + 18, anchor="middle"))
            free = x + half + 6
    return joined([*parts, label(words, (scale.start + scale.end) / 2, y + 38, SMALL, "soft", "middle")])


def side_axis(scale: Scale, x: float, right: float, words: str, values: Sequence[float], texts: Sequence[str]) -> Markup:
    """An axis at the left of a plot, with a grid up to `right`; `words` stands above it."""
    parts = []
    for value, text in zip(values, texts, strict=True):
        y = scale(value)
        parts += [line(x, y, right, y, "grid"), label(text, x - 8, y + 4, anchor="end")]
    return joined([*parts, label(words, MARGIN, scale.end - 12, SMALL, "soft") if words else NOTHING])


def row_axis(scale: Scale, x: float, right: float, words: str) -> Markup:
    """A vertical linear axis with a grid, from 0 on."""
    values = scale.ticks(6)
    return side_axis(scale, x, right, words, values, numbers(values))


def hatches(key: str, roots: Sequence[Limit]) -> Markup:
    """Definitions of the hatchings that a picture uses."""
    return tag("defs", joined(_hatch(key, root) for root in roots))


def hatch_fill(key: str, root: Limit) -> str:
    """The value of `fill` for a wait with this root, in the picture whose ids `key` begins."""
    return f"url(#{hatch_name(key, root)})"


def hatch_name(key: str, root: Limit) -> str:
    """The id of a root's hatching in a picture."""
    return f"{key}-{root.name.lower()}"


def cycle_axis(scale: Scale, y: float, clock_hz: float) -> Markup:
    """A time axis: cycles, and below them the same in seconds at the target's clock."""
    parts = [line(scale.start, y, scale.end, y), label("cycles", MARGIN, y + 18), label("time", MARGIN, y + 33, SMALL, "soft")]
    values, (unit, factor) = ticks(scale.high, max(2, min(8, int((scale.end - scale.start) / TICK)))), seconds_unit(scale.high / clock_hz)
    for value, words in zip(values, numbers(values), strict=True):
        x = scale(value)
        anchor = "end" if x > scale.end - 24 else "middle"
        time = f"{number(float(f'{value / clock_hz * factor:.3g}'))} {unit}"
        parts += [line(x, y, x, y + 5), label(words, x, y + 18, anchor=anchor), label(time, x, y + 33, SMALL, "soft", anchor)]
    return joined(parts)


def matrix_signs(key: str, roots: Sequence[Limit]) -> list[Entry]:
    """What the lane of the matrix unit shows: its work, and the hatchings of waits with these roots."""
    work = (box_sign(solid_paint(Kind.MATRIX)), ROWS[Limit.MATRIX_UNIT].name)
    return [work, *((box_sign({"fill": hatch_fill(key, root)}), ROWS[root].name) for root in roots)]


def coverage(starts: Int64, ends: Int64, edges: Float64, weights: Float64 | None = None) -> Float64:
    """The share of each stretch between two edges that intervals cover, each counting by its weight. The intervals are sorted and don't
    overlap."""
    if not len(starts):
        return np.zeros(len(edges) - 1)
    each = np.ones(len(starts)) if weights is None else weights
    before = np.searchsorted(starts, edges, "right")
    total = np.concatenate([[0.0], np.cumsum((ends - starts) * each)])
    last = np.maximum(before - 1, 0)
    busy = np.where(before > 0, total[before] - np.maximum(0.0, ends[last] - edges) * each[last], 0.0)
    return np.diff(busy) / np.diff(edges)


def stacked(areas: Iterable[Area], edges: Float64, scale: Scale, bottom: float, height: float) -> Iterator[Markup]:
    """Areas of columns between edges, one upon the other: a share of 1 is so many pixels high."""
    below = np.zeros(len(edges) - 1)
    for words, paint, share in areas:
        outline = _outline(edges, bottom - height * below, bottom - height * (below + share), scale)
        yield tag("path", title(words), attributes={**paint, "stroke-width": 0}, d=outline)
        below = below + share


def _outline(edges: Float64, low: Float64, high: Float64, scale: Scale) -> str:
    """The steps of the upper edge to the right, and those of the lower one back. Steps of one height are one."""
    lefts = [round(scale(edge), 1) for edge in edges.tolist()]

    def steps(heights: Float64) -> list[tuple[float, float, float]]:
        columns = zip(lefts, lefts[1:], np.round(heights, 1).tolist(), strict=False)
        runs = ((height, [*own]) for height, own in groupby(columns, itemgetter(2)))
        return [(own[0][0], own[-1][1], height) for height, own in runs]

    there = "".join(f"V{height:g}H{right:g}" for _, right, height in steps(high))
    back = "".join(f"V{height:g}H{left:g}" for left, _, height in reversed(steps(low)))
    return f"M{lefts[0]:g} {low[0]:.1f}{there}{back}Z"


def _hatch(key: str, root: Limit) -> Markup:
    hatch = WAITS[root]
    ends = [(0, 6), (6, 0)] if hatch.crossed else [(0, 6)]
    ink: dict[str, Value] = {"class": f"t-{hatch.kind}", "stroke": KINDS[hatch.kind].line, "stroke-width": 2.4}
    strokes = joined(tag("line", attributes=ink, x1=0, y1=0, x2=x, y2=y) for x, y in ends)
    turn = f"rotate({hatch.angle})"
    return tag("pattern", strokes, id=hatch_name(key, root), width=6, height=6, patternUnits="userSpaceOnUse", patternTransform=turn)
