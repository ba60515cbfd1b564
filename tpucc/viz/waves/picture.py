"""The array as a moving SVG: numbers slide through it once a cycle, and what stays stays.

Every group is a photograph of registers; what moves at the end of a cycle moves to where the next photograph has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.diagnostics import counted
from tpucc.viz.palette import WAVE_RULES, style_sheet
from tpucc.viz.svg import Markup, joined, label, picture, tag
from tpucc.viz.text import LARGE, NORMAL, text_width
from tpucc.viz.waves.geometry import MARGIN, roomy
from tpucc.viz.waves.layers import layers
from tpucc.viz.waves.motion import Film, Shown
from tpucc.viz.waves.scaffold import scaffold
from tpucc.viz.waves.work import Demo

KEY = "waves"
MOST = 12
"""Rows and columns of elements of which a browser still moves every number."""
HEAD = 62.0


def waves_svg(work: Demo, still: int | None = None) -> str:
    """The picture. With `still` nothing moves, and this cycle is shown; else the busiest one stands where a viewer doesn't move.

    Raises `ValueError` when there are more elements than `MOST` × `MOST`.
    """
    if max(work.rows, work.columns) > MOST:
        raise ValueError(f"{work.rows} × {work.columns} elements are more than {MOST} × {MOST}")
    geometry = roomy(work)
    film = Film(len(work.frames), busiest(work) if still is None else still)
    drawn = [list(layer) for layer in layers(work, geometry)]
    body = joined(film.layer(_kept(layer, still)) for layer in drawn)
    css = "" if still is not None else film.style_sheet(show for layer in drawn for show, _ in layer)
    style = tag("style", Markup(style_sheet(WAVE_RULES) + css))
    width = max(geometry.width, text_width(_title(work), LARGE, bold=True) + 2 * MARGIN, text_width(_SUBTITLE, NORMAL) + 2 * MARGIN)
    whole = tag("g", scaffold(work, geometry), body, transform=f"translate({round((width - geometry.width) / 2)} {HEAD:.0f})")
    return picture(KEY, _title(work), width, geometry.height + HEAD, style, _heading(work), whole)


def busiest(work: Demo) -> int:
    """The cycle in which most elements multiply; of several the first."""
    return int(np.argmax([np.count_nonzero(frame.cycle.busy) for frame in work.frames]))


def _kept(layer: Sequence[Shown], still: int | None) -> Iterator[Shown]:
    """All of a layer, or what is to be seen in one cycle."""
    for show, markup in layer:
        if still is None or show.first <= still < show.last:
            yield show, markup


_SUBTITLE = "Activations go right and sums go down, one element a cycle; weights stay. A colour is a row of the input."


def _title(work: Demo) -> str:
    tiles = f" in {work.tiles} tiles" if work.tiles > 1 else ""
    return f"{counted(work.count, 'row')} through {work.rows} × {work.columns} elements{tiles}: {len(work.frames)} cycles"


def _heading(work: Demo) -> Markup:
    head = label(_title(work), MARGIN, 34, LARGE, font_weight="bold")
    return joined([head, label(_SUBTITLE, MARGIN, 56, NORMAL, "soft")])
