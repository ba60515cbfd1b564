"""The array as a moving SVG: numbers slide through it once a cycle, and what stays stays.

Every group is a photograph of registers; what moves at the end of a cycle moves to where the next photograph has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpucc.diagnostics import counted
from tpucc.see.palette import WAVE_RULES, ink_fill, ink_line, style_sheet, wave_solid_paint
from tpucc.see.svg import Markup, escaped, joined, label, picture, tag
from tpucc.see.text import LARGE, NORMAL, SMALL, text_width
from tpucc.see.waves.geometry import CAPTION, MARGIN, Geometry, Lattice, roomy
from tpucc.see.waves.layers import layers
from tpucc.see.waves.marks import WAITING, WEIGHT, box, chip, number_mark, pill_paint
from tpucc.see.waves.motion import Film, Shown
from tpucc.systolic.work import Demo

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
    whole = tag("g", _scaffold(work, geometry), body, transform=f"translate({round((width - geometry.width) / 2)} {HEAD:.0f})")
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


def _scaffold(work: Demo, geometry: Geometry) -> Markup:
    """The parts that never change, below those that move: empty places, captions, the input, NumPy's product, the legend."""
    array = geometry.array
    parts = [
        box(array, i, j, {**ink_fill("band"), "class": "f-band l-grid", "stroke": ink_line("grid")["stroke"]}, rx=8)
        for i in range(work.rows)
        for j in range(work.columns)
    ]
    parts += [_known(geometry.input, i, n, value) for i, lane in enumerate(work.lanes.tolist()) for n, value in enumerate(lane)]
    parts += [_places(geometry.setup, i, delay) for i in range(work.rows) for delay in range(i + 1)]
    parts += [_places(geometry.accumulators, i, j) for i in range(work.count) for j in range(work.columns)]
    parts += [_known(geometry.product, row, j, int(work.product[row, j])) for row in range(work.count) for j in range(work.columns)]
    return joined([*parts, *_captions(work, geometry), *_legend()])


def _places(lattice: Lattice, i: int, j: int) -> Markup:
    x, y = lattice.middle(i, j)
    return tag("circle", attributes=ink_fill("grid"), cx=x, cy=y, r=2.2)


def _known(lattice: Lattice, i: int, j: int, value: int) -> Markup:
    x, y = lattice.middle(i, j)
    return number_mark(value, x, y, lattice.font, "soft")


def _captions(work: Demo, geometry: Geometry) -> Iterator[Markup]:
    array, setup, product = geometry.array, geometry.setup, geometry.product
    y = array.y - CAPTION * 0.6
    yield label("the input", geometry.input.x + geometry.input.width, y, SMALL, "soft", "end")
    yield label("setup", setup.x + setup.width, y, SMALL, "soft", "end")
    below = product.y - 8
    yield label("X @ W by NumPy", product.x + work.columns * product.across - 4, below, SMALL, "soft", "end")
    yield label("accumulators", array.x, below, SMALL, "soft")
    for row in range(work.count):
        x, y, look = product.x - 6, product.middle(row, 0)[1] + 4, wave_solid_paint(row)
        yield tag("text", escaped(f"row {row}"), attributes=look, x=x, y=y, font_size=SMALL, text_anchor="end", font_weight="bold")


def _legend() -> Iterator[Markup]:
    """Which box is what, above the input."""
    sample = wave_solid_paint(0), WEIGHT, pill_paint(0), WAITING
    words = "activation", "weight in use", "sum so far", "weight waiting"
    for index, (paint, text) in enumerate(zip(sample, words, strict=True)):
        x, y = MARGIN + index % 2 * 122, 22.0 + index // 2 * 24
        yield chip(x + 13, y - 4, 26, 16, paint, rx=8.0 if index == 2 else 4.0)
        yield label(text, x + 32, y, SMALL, "soft")
