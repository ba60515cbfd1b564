"""The memory map: which values are in the unified buffer, in which rows, and when."""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.explain.attribution import Attribution, attribution
from tpucc.explain.names import shown
from tpucc.explain.occupancy import handovers
from tpucc.explain.quantities import size
from tpucc.explain.terms import AT_ONCE
from tpucc.isa.program import Program, Resident
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH, Scale, cycle_axis, row_axis
from tpucc.see.heading import EDGE, heading, legend, line_sign
from tpucc.see.palette import Kind, in_order, ink_line, kind_of_layer
from tpucc.see.svg import NOTHING, Markup, Rect, Value, joined, kind_rect, label, picture, tag, title
from tpucc.see.text import SMALL, fitted_name, text_width

LEFT = 92.0
"""Room for the axis."""
LOW, HIGH, NAMED_ROW = 300.0, 760.0, 17.0
"""The least and the greatest height of the map; within them, most rectangles are high enough for a name."""
DRAWN = 1500
"""Rectangles that a map may have; the largest are drawn."""
BUFFER_COLOURS = {
    Kind.MATRIX: "values of layers whose products the matrix unit computes",
    Kind.VECTOR: "values of layers of the activation unit alone",
    Kind.HOST: "values from the host",
}
"""What the colours say of a buffer. The activation unit writes the values of layers with products, too."""
KEY = "memory"
DASHES = "6 4"


def memory_svg(program: Program, starts: Int64, ends: Int64, cycles: int, until: int = 0, rows: int = 0, wide: float = WIDTH) -> str:
    """Every stay of a buffer as a rectangle, time to the right and rows upwards; the peak and its lower bound as lines.

    `starts` and `ends` are the cycles of each instruction, `cycles` the makespan. The axis ends there, or at the cycle `until`, if that is
    later. With `rows`, the other axis ends at that row at least, and the map has its greatest height, so that two maps can be compared. The
    picture is `wide` pixels wide.
    """
    drawn = _largest(program, starts, ends)
    covered = {
        id(handover.before): int(starts[handover.after.first]) for handover in reversed(list(handovers(program.residents, starts, ends)))
    }
    whose = attribution(program)
    colours = {id(resident): kind_of(program, whose, resident) for resident in drawn}
    kinds = in_order(colours.values())
    head = heading(
        _title(program), _subtitle(program, len(drawn), bool(covered)), kinds, most=wide - 2 * EDGE, meanings=_colours(program.machine)
    )
    named = _lines(program)
    signs = [(line_sign("alarm", stroke_width=1.5, stroke_dasharray=dashes), f"{words} {rows:,} rows") for words, rows, dashes in named]
    key = legend(signs, EDGE, EDGE + head.height, wide - EDGE)
    top, height = EDGE + head.height + key.height + 26, HIGH if rows else _height(program)
    across = Scale(0, max(1, cycles, until), LEFT, wide - EDGE)
    up = Scale(0, max(1, program.peak_rows, program.lower_bound_rows, rows), top + height, top)
    rects = joined(
        _rect(program, resident, colours[id(resident)], starts, ends, across, up, covered.get(id(resident))) for resident in drawn
    )
    parts = [
        head.markup,
        key.markup,
        row_axis(up, LEFT, across.end, "rows"),
        rects,
        *(_line(up(rows), across.end, dashes) for _, rows, dashes in named),
        cycle_axis(across, top + height, program.target.clock_hz),
    ]
    return picture(KEY, _title(program), wide, top + height + 44, *parts)


def _colours(machine: Machine) -> Mapping[Kind, str]:
    """What the colours say of a buffer of a machine."""
    if machine is DEFAULT:
        return BUFFER_COLOURS
    home = machine.by_memory[machine.values.spills_to].title
    return {**BUFFER_COLOURS, Kind.VECTOR: "values that are computed", Kind.HOST: f"values from {home}"}


def _height(program: Program) -> float:
    """High enough for a name in a rectangle of middle size, within bounds."""
    rows = sorted(resident.rows for resident in program.residents)
    return min(HIGH, max(LOW, NAMED_ROW * program.peak_rows / rows[len(rows) // 2])) if rows else LOW


def _title(program: Program) -> str:
    peak = size(program.peak_rows * program.target.mxu * program.machine.values.dtype.itemsize)
    share = percent(program.peak_rows, program.target.unified_buffer_rows)
    return f"{program.title}: the peak is at {program.peak_rows:,} rows of the {program.machine.values.title} ({peak}, {share} of it)"


def _subtitle(program: Program, drawn: int, covered: bool) -> str:
    hidden = len(program.residents) - drawn
    more = f"; the {hidden:,} smallest are not drawn" if hidden else ""
    over = " One drawn over another takes rows that the other is done with." if covered else ""
    return f"A rectangle is a buffer: the rows that it takes and the time that it stays{more}.{over}"


def _largest(program: Program, starts: Int64, ends: Int64) -> list[Resident]:
    if len(program.residents) <= DRAWN:
        return list(program.residents)
    areas = [(-r.rows * int(ends[r.last] - starts[r.first]), i) for i, r in enumerate(program.residents)]
    return [program.residents[i] for _, i in sorted(sorted(areas)[:DRAWN], key=lambda pair: pair[1])]


def kind_of(program: Program, whose: Attribution, resident: Resident) -> Kind:
    """Grey for what the host brings, and for copies of inputs, else the colour of the layer that computes it."""
    bring, _ = program.machine.transfers
    if program.instructions["opcode"][resident.first] == bring.opcode or resident.layer >= len(program.layers):
        return Kind.HOST
    layer = whose.layers[whose.places[resident.layer]]
    return kind_of_layer(layer.kind, layer.multiplies)


def _rect(
    program: Program, resident: Resident, kind: Kind, starts: Int64, ends: Int64, across: Scale, up: Scale, covered: int | None
) -> Markup:
    """The name stands where no other rectangle is drawn over this one, as from the cycle `covered` on."""
    first, last = int(starts[resident.first]), int(ends[resident.last])
    left, right = across(first), max(across(last), across(first) + 1)
    bottom, top = up(resident.start), up(resident.start + resident.rows)
    name = shown(resident.name)
    place = f"rows {resident.start:,}–{resident.start + resident.rows - 1:,} · cycles {first:,}–{last:,}"
    edge = min(1.0, (right - left) / 4)
    shape = kind_rect(kind, left, top, right - left, bottom - top, title(f"{name}\n{place}"), stroke_width=edge)
    free = right if covered is None else min(right, across(covered))
    return joined([shape, _name(name, Rect(left, top, free, bottom), up(program.lower_bound_rows))])


def _name(name: str, rect: Rect, bound: float) -> Markup:
    """The name where it fits: across, else upwards, else as much of it as fits. It keeps off the line of the lower bound."""
    width, (top, bottom) = rect.width - 8, _clear(rect, bound)
    middle, long = (top + bottom) / 2, text_width(name, SMALL)
    if long > width and width >= 6 and long <= bottom - top - 4:
        x = rect.middle[0] + 4
        return label(name, x, middle, anchor="middle", transform=f"rotate(-90 {x:.1f} {middle:.1f})")
    if bottom - top >= SMALL + 2 and (words := fitted_name(name, SMALL, width)):
        return label(words, rect.left + 4, middle + 4)
    return NOTHING


def _clear(rect: Rect, bound: float) -> tuple[float, float]:
    """Top and bottom of the larger part of a rectangle that the line of the lower bound leaves; all of it where that runs elsewhere."""
    if not rect.top < bound < rect.bottom:
        return rect.top, rect.bottom
    return (rect.top, bound - 2) if bound - rect.top > rect.bottom - bound else (bound + 2, rect.bottom)


def _line(y: float, end: float, dashes: str | None) -> Markup:
    place: dict[str, Value] = {"x1": LEFT, "x2": end, "stroke-width": 1.5}
    return tag("line", attributes={**ink_line("alarm"), **place}, y1=y, y2=y, stroke_dasharray=dashes)


def _lines(program: Program) -> list[tuple[str, int, str | None]]:
    """The lines of a map: their names, their rows, and their dashes. The bound is one of them where it is known and below the peak."""
    peak, bound = program.peak_rows, program.lower_bound_rows
    if peak == bound or not bound:
        return [(f"peak = {AT_ONCE}" if bound else "peak", peak, None)]
    return [("peak", peak, None), (AT_ONCE, bound, DASHES)]
