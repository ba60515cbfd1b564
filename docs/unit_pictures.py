"""The interfaces of the hardware's units: each a box, inputs at the left and outputs at the right, read off the hardware itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyrtl import Input, Output, WireVector

from tpucc.rtl.shape import shape_of
from tpucc.rtl.units import UNITS, Unit, unit_block
from tpucc.see.palette import ink_line
from tpucc.see.svg import Markup, label, line, picture, tag
from tpucc.see.text import LARGE, NORMAL, SMALL
from tpucc.target import load_target

MARGIN, COLUMNS, WIDE, GAP = 24.0, 2, 400.0, 28.0
BOX_LEFT, BOX_WIDE, LINE, HEAD, STUB = 140.0, 150.0, 17.0, 40.0, 16.0
MANY = re.compile(r"^(push|load|host|weights|matrix|activation)_(?!finished)|_\d+$")
"""What wires of one bundle have in common: the beginning of their names, or a number at the end."""
Wire = tuple[str, str]
"""A wire or a bundle, and its bits in words."""


def units_svg() -> str:
    """All units of the hardware of `tiny`."""
    title = "The units of the hardware, and their wires"
    parts, y = [label(title, MARGIN, 34, LARGE, font_weight="bold")], 60.0
    for row in range(0, len(UNITS), COLUMNS):
        drawn = [_sides(unit) for unit in UNITS[row : row + COLUMNS]]
        high = HEAD + LINE * max(len(side) for _, *sides in drawn for side in sides)
        for column, (unit, left, right) in enumerate(drawn):
            parts += _box(unit, left, right, MARGIN + column * (WIDE + GAP), y, high)
        y += high + GAP
    width = 2 * MARGIN + COLUMNS * WIDE + (COLUMNS - 1) * GAP
    return picture("rtl-units", title, width, y, *parts)


def _sides(unit: Unit) -> tuple[Unit, list[Wire], list[Wire]]:
    block = unit_block(unit, shape_of(load_target("tiny")))
    inputs, outputs = (_bundled(block.wirevector_subset(kind)) for kind in (Input, Output))
    return unit, inputs, outputs


def _bundled(wires: Iterable[WireVector]) -> list[Wire]:
    """Wires and bundles, in the order of their names."""
    bundles: dict[str, list[WireVector]] = {}
    for wire in sorted(wires, key=lambda wire: str(wire.name)):
        found = MANY.search(wire.name)
        name = wire.name if found is None else f"{found[1] or wire.name[: found.start()]}_…"
        bundles.setdefault(name, []).append(wire)
    return [(name if len(held) > 1 else str(held[0].name), _bits([len(wire) for wire in held])) for name, held in bundles.items()]


def _bits(bits: list[int]) -> str:
    if len(bits) == 1:
        return str(bits[0])
    return f"{len(bits)} of {bits[0]}" if len({*bits}) == 1 else f"{len(bits)}, in all {sum(bits)}"


def _box(unit: Unit, left: list[Wire], right: list[Wire], x: float, y: float, high: float) -> Iterator[Markup]:
    edge = x + BOX_LEFT
    yield tag("rect", attributes=ink_line("ink"), x=edge, y=y, width=BOX_WIDE, height=high - 10, rx=4, fill="none")
    yield label(unit.name, edge + BOX_WIDE / 2, y + 20, NORMAL, anchor="middle", font_weight="bold")
    for side, anchor, inner, outer in ((left, "end", edge, edge - STUB), (right, "start", edge + BOX_WIDE, edge + BOX_WIDE + STUB)):
        for number, (name, bits) in enumerate(side):
            middle = y + HEAD + number * LINE
            yield line(inner, middle - 4, outer, middle - 4, "ink")
            yield label(name, outer + (-4 if anchor == "end" else 4), middle, SMALL, anchor=anchor)
            yield label(bits, inner + (6 if anchor == "end" else -6), middle, SMALL, "soft", "start" if anchor == "end" else "end")
