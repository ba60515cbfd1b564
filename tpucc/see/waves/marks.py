"""The boxes of the picture, and the numbers in them."""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.see.palette import Kind, ink_fill, kind_paint, wave_line, wave_paint, wave_solid_paint
from tpucc.see.svg import Markup, Value, joined, label, tag
from tpucc.see.waves.geometry import CHIP, LOWER, RIGHT, UPPER, Geometry, Lattice

WEIGHT: Mapping[str, Value] = kind_paint(Kind.WEIGHTS)
WAITING: Mapping[str, Value] = {**WEIGHT, "stroke-dasharray": "3 2"}


def pill_paint(row: int) -> dict[str, str]:
    """A sum that isn't complete: an outline in the colour of its row."""
    outline = wave_line(row)
    return {**outline, **ink_fill("paper"), "class": f"f-paper {outline['class']}"}


def box(lattice: Lattice, i: int, j: int, paint: Mapping[str, Value], **more: Value) -> Markup:
    x, y = lattice.corner(i, j)
    return tag("rect", attributes=paint, x=x, y=y, width=lattice.width, height=lattice.height, **more)


def chip(x: float, y: float, width: float, height: float, paint: Mapping[str, Value], rx: float = 5.0) -> Markup:
    return tag("rect", attributes=paint, x=x - width / 2, y=y - height / 2, width=width, height=height, rx=rx)


def number_mark(value: int, x: float, y: float, font: float, ink: str = "ink", **more: Value) -> Markup:
    return label(signed(value), x, y + font * 0.36, font, ink, "middle", **more)


def signed(value: int) -> str:
    """With a true minus sign."""
    return str(value).replace("-", "−")


def activation_mark(lattice: Lattice, i: int, j: int, value: int, row: int) -> Markup:
    """An activation of this row, outside the array."""
    x, y = lattice.middle(i, j)
    return joined([chip(x, y, lattice.width, lattice.height, wave_solid_paint(row)), number_mark(value, x, y, lattice.font, "paper")])


def weight_mark(geometry: Geometry, i: int, j: int, value: int, *, waits: bool) -> Markup:
    """A weight in use, or below it one in the shadow."""
    x, y = geometry.array.within(i, j, RIGHT, LOWER if waits else UPPER)
    font = geometry.array.font
    return joined([chip(x, y, geometry.chip, font * CHIP, WAITING if waits else WEIGHT), number_mark(value, x, y, font)])


def sum_mark(lattice: Lattice, i: int, j: int, value: int, row: int, complete: bool) -> Markup:
    x, y = lattice.middle(i, j)
    paint = wave_paint(row) if complete else pill_paint(row)
    box = chip(x, y, lattice.width, lattice.height, paint)
    return joined([box, number_mark(value, x, y, lattice.font, font_weight="bold" if complete else None)])
