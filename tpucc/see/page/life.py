"""The view Byte: its picture, and each of its stops in a row with what it costs."""

from __future__ import annotations

from tpucc.explain.life import Life, Stop, signed
from tpucc.isa.program import Program
from tpucc.see.charts.life import KEY, life_svg
from tpucc.see.kit import NARROW, by_width
from tpucc.see.svg import Markup, escaped, joined, row, table, tag

HEADS = ("place", "cycles", "value", "what happens")


def life_view(program: Program, life: Life | str, cycles: int, width: float) -> Markup:
    """`cycles` are those of the program; without a life a sentence says why there is none."""
    if isinstance(life, str):
        return tag("p", escaped(life), class_="lead")
    drawn = by_width(KEY, *(life_svg(program, life, cycles, across) for across in (width, NARROW)))
    return joined([tag("div", drawn, class_="peak has-narrow"), tag("div", table(HEADS, map(_row, life.stops)), class_="scroll")])


def _row(stop: Stop) -> Markup:
    cells = stop.place, f"{stop.end - stop.start:,}", signed(stop.value), stop.words
    return row(map(escaped, cells), data_instruction=stop.instruction if stop.instruction >= 0 else None)
