"""Where the cycles go, as one bar: the matrix unit's time divided by what it does."""

from __future__ import annotations

from tpucc.viz.charts.chart import STALLS, hatch_fill, hatches
from tpucc.viz.palette import Kind, solid_paint
from tpucc.viz.statistics import Breakdown
from tpucc.viz.svg import Markup, ink_rect, joined, label, picture, tag, title
from tpucc.viz.text import SMALL, fitted, percent

WIDTH, HEIGHT, LINE = 600.0, 28.0, 20.0
KEY = "breakdown"
ROUNDING = 1e-9
"""Percent: a share below it is what subtracting floats has left."""


def breakdown_svg(found: Breakdown) -> str:
    """The array's work and its stalls; they add up to all cycles. The order of data and the inputs are parts of the rest."""
    rest = found.non_matrix - found.raw_stall - found.input_stall
    stalls = {"weight_stall": found.weight_stall, "weight_shift": found.weight_shift, "raw_stall": found.raw_stall}
    stalls |= {"input_stall": found.input_stall, "other": rest}
    shares = [(name, share) for name, share in stalls.items() if share > ROUNDING]
    parts = [hatches(KEY, [name for name, _ in shares]), ink_rect("band", 0, 0, WIDTH, HEIGHT)]
    active = WIDTH * found.array_active / 100
    words = f"works, {percent(found.array_active, 100)} of cycles"
    parts.append(tag("rect", title(words), attributes=solid_paint(Kind.MATRIX), x=0, y=0, width=active, height=HEIGHT))
    x, y = active, HEIGHT + 10
    parts.append(_entry(tag("rect", attributes=solid_paint(Kind.MATRIX), x=0, y=y, width=16, height=12), words, y))
    for name, share in shares:
        width = WIDTH * share / 100
        words = f"{STALLS[name].meaning}, {percent(share, 100)}"
        parts.append(tag("rect", title(words), x=x, y=0, width=width, height=HEIGHT, fill=hatch_fill(KEY, name)))
        x, y = x + width, y + LINE
        parts.append(_entry(tag("rect", x=0, y=y, width=16, height=12, fill=hatch_fill(KEY, name)), words, y))
    return picture(KEY, "Where the matrix unit's cycles go", WIDTH, y + LINE, *parts)


def _entry(swatch: Markup, words: str, y: float) -> Markup:
    return joined([swatch, label(fitted(words, SMALL, WIDTH - 24), 24, y + 10)])
