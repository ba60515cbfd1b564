"""The common parts of the charts: axes with round numbers, hatching for stalls, headings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.quantities import number, numbers
from tpucc.explain.segments import Cause
from tpucc.numerics import Float64, Int64
from tpucc.sim.durations import seconds_unit
from tpucc.viz.legend import Entry, box_sign
from tpucc.viz.palette import KINDS, Kind, solid_paint
from tpucc.viz.svg import Markup, joined, label, line, tag
from tpucc.viz.text import SMALL

WIDTH = 800.0
"""The width of a chart with its margins, in pixels."""
MARGIN = 20.0
TICK = 70.0
"""The room that a number of the axis of cycles takes at least, in pixels."""


@dataclass(frozen=True, slots=True)
class Hatch:
    """How a stall is drawn: the hue of what it waits for, the angle of the lines, and its name."""

    kind: Kind
    angle: int
    meaning: str


_HATCHES: Mapping[Cause, tuple[Kind, int]] = {
    Cause.WEIGHT_STALL: (Kind.WEIGHTS, 45),
    Cause.WEIGHT_SHIFT: (Kind.WEIGHTS, 135),
    Cause.RAW_STALL: (Kind.VECTOR, 45),
    Cause.INPUT_STALL: (Kind.HOST, 45),
    Cause.ACTIVATION: (Kind.VECTOR, 135),
    Cause.HOST_STEP: (Kind.HOST, 135),
    Cause.OUTPUT: (Kind.HOST, 0),
    Cause.INPUT: (Kind.VECTOR, 0),
    Cause.IDLE: (Kind.HOST, 90),
}
STALLS: Mapping[str, Hatch] = MappingProxyType(
    {ROWS[cause].key: Hatch(kind, angle, ROWS[cause].name) for cause, (kind, angle) in _HATCHES.items()}
)
"""The reasons for which the matrix unit stands still, by their keys in `stats.json`."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to a place: linear, `low` at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float

    def worth(self, pixels: float) -> float:
        """How much so many pixels stand for."""
        return pixels * (self.high - self.low) / (self.end - self.start)

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(high: float, most: int = 8) -> list[float]:
    """Round values from 0 to `high`, at most `most` steps: multiples of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10(max(high, 1e-12) / most))
    while high / step > most:
        step *= 2.5 if f"{step:e}".startswith("2") else 2.0
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def hatches(key: str, names: Sequence[str]) -> Markup:
    """Definitions of the hatchings that a picture uses."""
    return tag("defs", joined(_hatch(key, name) for name in names))


def hatch_fill(key: str, name: str) -> str:
    return f"url(#{key}-{name})"


def cycle_axis(scale: Scale, y: float, clock_hz: float | None = None) -> Markup:
    """A time axis: cycles, and below them the same in seconds at the target's clock, where one is given."""
    parts = [line(scale.start, y, scale.end, y), label("cycles", MARGIN, y + 18)]
    parts += [label("time", MARGIN, y + 33, SMALL, "soft")] if clock_hz else []
    values = ticks(scale.high, max(2, min(8, int((scale.end - scale.start) / TICK))))
    for value, words in zip(values, numbers(values), strict=True):
        x = scale(value)
        anchor = "end" if x > scale.end - 24 else "middle"
        parts += [line(x, y, x, y + 5), label(words, x, y + 18, anchor=anchor)]
        if clock_hz:
            unit, factor = seconds_unit(scale.high / clock_hz)
            parts.append(label(f"{number(float(f'{value / clock_hz * factor:.3g}'))} {unit}", x, y + 33, SMALL, "soft", anchor))
    return joined(parts)


def row_axis(scale: Scale, x: float, right: float, words: str) -> Markup:
    """A vertical axis with a grid; `words` stands above it."""
    parts = []
    values = ticks(scale.high, 6)
    for value, text in zip(values, numbers(values), strict=True):
        y = scale(value)
        parts += [line(x, y, right, y, "grid"), label(text, x - 8, y + 4, anchor="end")]
    parts.append(label(words, x - 8, scale.end - 12, SMALL, "soft", "end"))
    return joined(parts)


def matrix_signs(key: str, names: Sequence[str]) -> list[Entry]:
    """What the lane of the matrix unit shows: its work, and the hatchings of these stalls."""
    work = (box_sign(solid_paint(Kind.MATRIX)), ROWS[Cause.ACTIVE].name)
    return [work, *((box_sign({"fill": hatch_fill(key, name)}), STALLS[name].meaning) for name in names)]


def coverage(starts: Int64, ends: Int64, edges: Float64) -> Float64:
    """The share of each stretch between two edges that intervals cover. The intervals are sorted and don't overlap."""
    if not len(starts):
        return np.zeros(len(edges) - 1)
    before = np.searchsorted(starts, edges, "right")
    total = np.concatenate([[0.0], np.cumsum((ends - starts).astype(np.float64))])
    last = np.maximum(before - 1, 0)
    busy = np.where(before > 0, total[before] - np.maximum(0.0, ends[last] - edges), 0.0)
    return np.diff(busy) / np.diff(edges)


def _hatch(key: str, name: str) -> Markup:
    hatch = STALLS[name]
    stroke = tag("line", class_=f"t-{hatch.kind}", stroke=KINDS[hatch.kind].line, x1=0, y1=0, x2=0, y2=6, stroke_width=2.4)
    turn = f"rotate({hatch.angle})"
    return tag("pattern", stroke, id=f"{key}-{name}", width=6, height=6, patternUnits="userSpaceOnUse", patternTransform=turn)
