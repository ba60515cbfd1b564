"""The ceilings of a roofline: weight memory's slope, the matrix unit's roof, and dashed ones of the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tpucc.diagnostics import counted, percent
from tpucc.target import Target
from tpucc.viz.charts.beside import pieces
from tpucc.viz.charts.chart import Scale
from tpucc.viz.charts.roofs import CELLS, HOST, LINK, UNIT, RooflinePoint, bandwidth_text, ridge
from tpucc.viz.legend import Entry, line_sign
from tpucc.viz.palette import ink_line
from tpucc.viz.rect import Point, Rect
from tpucc.viz.svg import Markup, joined, line, number_text, tag
from tpucc.viz.text import number, rate_text

LEFT = 92.0
"""Where the axis of intensities begins."""
RIDGE, DASHES = "4 4", {LINK: "7 4", HOST: "7 4", CELLS: "2 3", UNIT: "12 3 2 3"}
"""The dashes of the line below the ridge, and of each ceiling of the whole model."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Logarithmic axes."""

    across: Scale
    up: Scale

    def point(self, intensity: float, rate: float) -> Point:
        return self.across(math.log10(intensity)), self.up(math.log10(rate))


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Weight memory's slope up to the ridge, and the matrix unit's flat roof; those of the `model` dashed, where it has some."""

    target: Target
    axes: Axes
    model: RooflinePoint | None = None

    @property
    def _corner(self) -> Point:
        return self.axes.point(ridge(self.target), self.target.peak_ops)

    @property
    def _foot(self) -> Point:
        """Where the slope leaves the picture, at the left or at the bottom."""
        rate = 2.0 * self.target.weight_bandwidth
        lowest = 10.0 ** max(self.axes.across.low, self.axes.up.low - math.log10(rate))
        return self.axes.point(lowest, lowest * rate)

    def _dashed(self) -> Iterator[tuple[str, float]]:
        """The name and the height of each dashed ceiling."""
        if self.model is not None:
            roofs = self.model.roofs(self.target)
            yield from ((name, self.axes.up(math.log10(roofs[name]))) for name in self.model.dashed(self.target))

    def lines(self) -> Markup:
        corner, end = self._corner, self.axes.across.end
        points = " ".join(f"{number_text(x)},{number_text(y)}" for x, y in (self._foot, corner, (end, corner[1])))
        roof = tag("polyline", attributes=ink_line("ink"), points=points, stroke_width=2)
        below = line(*corner, corner[0], self.axes.up.start, "rule", stroke_dasharray=RIDGE)
        dashed = (line(LEFT, y, end, y, "ink", stroke_width=1.5, stroke_dasharray=DASHES[name]) for name, y in self._dashed())
        return joined([below, roof, *dashed])

    def taken(self) -> list[Rect]:
        """Rectangles on the lines, on which no name may be written."""
        (x, y), end = self._corner, self.axes.across.end
        flat = [Rect(LEFT, height - 3, end, height + 3) for _, height in self._dashed()]
        return [*pieces(self._foot, (x, y)), Rect(x, y - 3, end, y + 3), Rect(x - 3, y, x + 3, self.axes.up.start), *flat]


def ceiling_signs(target: Target, model: RooflinePoint | None) -> Iterator[Entry]:
    """The entries of a legend that say what each line is, with its rate."""
    yield line_sign("ink", 12.0, stroke_width=2), f"weight memory: {bandwidth_text(target.weight_bandwidth)}"
    yield line_sign("ink", stroke_width=2), f"matrix unit: {rate_text(target.peak_ops)}"
    yield line_sign("rule", stroke_dasharray=RIDGE), f"ridge {number(round(ridge(target)))}"
    if model is not None:
        for name in model.dashed(target):
            sign = line_sign("ink", stroke_width=1.5, stroke_dasharray=DASHES[name])
            yield sign, f"{_ceiling_words(target, model, name)}: {rate_text(model.roofs(target)[name])}"


def _ceiling_words(target: Target, model: RooflinePoint, name: str) -> str:
    """The name of a dashed ceiling with what it follows from."""
    if name == CELLS:
        return f"matrix unit, {percent(model.roofs(target)[name], target.peak_ops)} of its cells hold weights"
    return f"{name.removeprefix('the ')}, busy for {counted(model.unit_cycles if name == UNIT else model.link_cycles, 'cycle')}"
