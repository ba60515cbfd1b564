"""What stands in the picture and never changes: empty places, captions, the input, NumPy's product, the legend."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.viz.palette import ink_fill, ink_line, wave_solid_paint
from tpucc.viz.svg import Markup, Value, escaped, joined, label, tag
from tpucc.viz.text import SMALL
from tpucc.viz.waves.geometry import CAPTION, MARGIN, Geometry, Lattice
from tpucc.viz.waves.marks import WAITING, WEIGHT, box, chip, number_mark, pill_paint
from tpucc.viz.waves.work import Demo


def scaffold(work: Demo, geometry: Geometry) -> Markup:
    """All of it, below what moves."""
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
        place: dict[str, Value] = {
            "x": product.x - 6,
            "y": product.middle(row, 0)[1] + 4,
            "font-size": SMALL,
            "text-anchor": "end",
            "font-weight": "bold",
        }
        yield tag("text", escaped(f"row {row}"), attributes={**wave_solid_paint(row), **place})


def _legend() -> Iterator[Markup]:
    """Which box is what, above the input."""
    sample = wave_solid_paint(0), WEIGHT, pill_paint(0), WAITING
    words = "activation", "weight in use", "sum so far", "weight waiting"
    for index, (paint, text) in enumerate(zip(sample, words, strict=True)):
        x, y = MARGIN + index % 2 * 122, 22.0 + index // 2 * 24
        yield chip(x + 13, y - 4, 26, 16, paint, rx=8.0 if index == 2 else 4.0)
        yield label(text, x + 32, y, SMALL, "soft")
