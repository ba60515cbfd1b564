"""Where the peak went: how many cells of the array do the model's work over time, and what the others wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tpucc.explain.cells import cells_in_use
from tpucc.explain.summary import Stats, peak_words
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.numerics import Float64
from tpucc.see.charts.chart import WAITS, WIDTH, Scale, coverage, cycle_axis, hatch_fill, hatches, side_axis
from tpucc.see.charts.timeline import Times
from tpucc.see.heading import EDGE, heading
from tpucc.see.legend import box_sign, legend
from tpucc.see.palette import Kind, kind_paint, solid_paint
from tpucc.see.svg import Value, picture, tag, title

KEY = "cells"
LEFT, HEIGHT = 70.0, 120.0
STRETCH = 2.0
"""The width of a column, in pixels."""
USEFUL, UNUSED = "cells with weights of the model", "cells without, while the array multiplies"
LEAST = 0.0005
"""The share of the plot from which on the legend has an area."""
Area = tuple[str, Mapping[str, Value], Float64]
"""What an area stands for, how it is drawn, and its share of the cells in each column."""


def peak_svg(program: Program, stats: Stats, times: Times, across: float = WIDTH) -> str:
    """Time to the right, the cells of the array upwards. The solid area is the model's work: its share of the plot is `useful_share` of
    `stats.json`. Above it are cells that hold no weights of the model while the array multiplies, and then the waits, by their roots."""
    scale = Scale(0, max(1, times.cycles), LEFT, across - EDGE)
    edges = np.linspace(0, scale.high, max(1, int((scale.end - scale.start) / STRETCH)) + 1)
    areas = list(_areas(program, times, edges))
    said = [f"{words}, {100 * share.mean():.1f} %" for words, _, share in areas]
    signs = [(box_sign(paint), words) for (_, paint, share), words in zip(areas, said, strict=True) if share.mean() >= LEAST]
    name, subtitle = peak_words(stats)
    head = heading(name, subtitle, (), most=across - 2 * EDGE)
    key = legend(signs, EDGE, EDGE + head.height - 6, across - EDGE)
    top = EDGE + head.height + key.height + 14
    cells, bottom = program.target.tile_bytes, top + HEIGHT
    parts = [hatches(KEY, times.roots), head.markup, key.markup]
    parts.append(side_axis(Scale(0, cells, bottom, top), LEFT, scale.end, "", (0, cells / 2, cells), ("0", "cells", f"{cells:,}")))
    below = np.zeros(len(edges) - 1)
    for words, (_, paint, share) in zip(said, areas, strict=True):
        outline = _outline(edges, bottom - HEIGHT * below, bottom - HEIGHT * (below + share), scale)
        parts.append(tag("path", title(words), attributes={**paint, "stroke-width": 0}, d=outline))
        below = below + share
    parts.append(cycle_axis(scale, bottom, program.target.clock_hz))
    return picture(KEY, f"{name}: {subtitle}", across, bottom + 44, *parts)


def _areas(program: Program, times: Times, edges: Float64) -> Iterator[Area]:
    """From below; those of which there is nothing are left out."""
    own = np.flatnonzero(effects(program.instructions).multiplies)
    starts, ends = times.starts[own], times.ends[own]
    used = cells_in_use(program)[own] / program.target.tile_bytes
    active, useful = coverage(starts, ends, edges), coverage(starts, ends, edges, used)
    waits = [(WAITS[root].meaning, {"fill": hatch_fill(KEY, root)}, coverage(*times.waits[root], edges)) for root in times.roots]
    areas = [(USEFUL, solid_paint(Kind.MATRIX), useful), (UNUSED, kind_paint(Kind.MATRIX), active - useful), *waits]
    yield from (area for area in areas if area[2].any())


def _outline(edges: Float64, low: Float64, high: Float64, scale: Scale) -> str:
    """The steps of the upper edge to the right, and those of the lower one back. Steps of one height are one."""
    lefts = [round(scale(edge), 1) for edge in edges.tolist()]

    def steps(heights: Float64) -> list[tuple[float, float, float]]:
        found: list[tuple[float, float, float]] = []
        for left, right, height in zip(lefts, lefts[1:], np.round(heights, 1).tolist(), strict=False):
            if found and found[-1][2] == height:
                found[-1] = (found[-1][0], right, height)
            else:
                found.append((left, right, height))
        return found

    there = "".join(f"V{height:g}H{right:g}" for _, right, height in steps(high))
    back = "".join(f"V{height:g}H{left:g}" for left, _, height in reversed(steps(low)))
    return f"M{lefts[0]:g} {low[0]:.1f}{there}{back}Z"
