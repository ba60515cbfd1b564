"""Where the peak went: how many cells of the array do the model's work over time, and what the others wait for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.occupancy import cells_in_use
from tpucc.explain.summary import Stats, end_to_end_parts, peak_words
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.numerics import Float64
from tpucc.see.charts.chart import WIDTH, Area, Scale, coverage, cycle_axis, hatch_fill, hatches, side_axis, stacked
from tpucc.see.charts.timeline import Times, layer_strip
from tpucc.see.heading import EDGE, box_sign, heading, legend
from tpucc.see.palette import Kind, kind_paint, solid_paint
from tpucc.see.svg import Markup, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.sim.durations import duration

KEY = "cells"
LEFT, HEIGHT = 70.0, 66.0
BAR, WHOLE = 16.0, 24.0
"""The heights of the bar from end to end, and of it with the lines to the plot, which is a part of it."""
STRIP, AXIS = 24.0, 44.0
"""The heights of the layers' names above the plot, and of the axis below it."""
STRETCH = 2.0
"""The width of a column, in pixels."""
USEFUL, UNUSED = "cells with weights of the model", "cells without, while the array multiplies"
LEAST = 0.0005
"""The share of the plot from which on the legend has an area."""


def peak_svg(program: Program, stats: Stats, times: Times, across: float = WIDTH, tries: str = "") -> str:
    """Time to the right, the cells of the array upwards, and above them whose time it is.

    The solid area is the model's work: its share of the plot is `useful_share` of `stats.json`. Above it are cells that hold no weights of
    the model while the array multiplies, and then the waits, by their roots. `tries` is a sentence about what would help, below the title.
    """
    scale = Scale(0, max(1, times.cycles), LEFT, across - EDGE)
    edges = np.linspace(0, scale.high, max(1, int((scale.end - scale.start) / STRETCH)) + 1)
    areas = [(f"{words}, {100 * share.mean():.1f} %", paint, share) for words, paint, share in _areas(program, times, edges)]
    signs = [(box_sign(paint), words) for words, paint, share in areas if share.mean() >= LEAST]
    name, subtitle = peak_words(stats)
    head = heading(name, f"{subtitle}. Try: {tries}" if tries else subtitle, (), most=across - 2 * EDGE)
    top = EDGE + head.height + WHOLE + STRIP
    cells, bottom = program.target.tile_bytes, top + HEIGHT
    key = legend(signs, EDGE, bottom + AXIS, across - EDGE)
    parts = [hatches(KEY, times.roots), head.markup, key.markup, layer_strip(program, times, scale, top - STRIP, top)]
    parts.append(_whole(stats, scale, EDGE + head.height))
    parts.append(side_axis(Scale(0, cells, bottom, top), LEFT, scale.end, "", (0, cells / 2, cells), ("0", "cells", f"{cells:,}")))
    parts += stacked(areas, edges, scale, bottom, HEIGHT)
    parts.append(cycle_axis(scale, bottom, program.target.clock_hz))
    return picture(KEY, f"{name}: {subtitle}", across, bottom + AXIS + key.height + 4, *parts)


def _whole(stats: Stats, scale: Scale, top: float) -> Markup:
    """A bar of the time from end to end: the host's work, the first and the last transfers, and the device between them. The plot below is
    the time without the host's work, to whose ends lines lead."""
    seconds = [each for _, each in end_to_end_parts(stats)]
    across = Scale(0, sum(seconds) or 1.0, scale.start, scale.end)
    parts = [label(duration(stats["end_to_end"]["seconds"]), LEFT - 8, top + 12, SMALL, "soft", "end")]
    for place, (name, own) in enumerate(end_to_end_parts(stats)):
        left, right = across(sum(seconds[:place])), across(sum(seconds[: place + 1]))
        words, is_host = f"{name} {duration(own)}", place in (0, len(seconds) - 1)
        paint = solid_paint(Kind.HOST) if is_host else kind_paint(Kind.MOVE)
        parts.append(tag("rect", title(words), attributes=paint, x=left, y=top, width=right - left, height=BAR))
        if text_width(words, SMALL) + 8 < right - left:
            parts.append(label(words, (left + right) / 2, top + 12, SMALL, "paper" if is_host else "ink", "middle"))
        if is_host:
            inner, end = (right, scale.start) if place == 0 else (left, scale.end)
            parts.append(line(inner, top + BAR, end, top + WHOLE, "rule"))
    return joined(parts)


def _areas(program: Program, times: Times, edges: Float64) -> Iterator[Area]:
    """From below; those of which there is nothing are left out."""
    own = np.flatnonzero(effects(program.instructions).multiplies)
    starts, ends = times.starts[own], times.ends[own]
    used = cells_in_use(program)[own] / program.target.tile_bytes
    active, useful = coverage(starts, ends, edges), coverage(starts, ends, edges, used)
    waits = [(ROWS[root].name, {"fill": hatch_fill(KEY, root)}, coverage(*times.waits[root], edges)) for root in times.roots]
    areas = [(USEFUL, solid_paint(Kind.MATRIX), useful), (UNUSED, kind_paint(Kind.MATRIX), active - useful), *waits]
    yield from (area for area in areas if area[2].any())
