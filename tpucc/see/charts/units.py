"""The units of any machine at work, instruction by instruction. TPU v1 has a picture of its own, with waits and shifts (`timeline.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.names import shown
from tpucc.isa.program import Program
from tpucc.machine.machine import Machine
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH, Scale, coverage, cycle_axis
from tpucc.see.charts.timeline import LANE, LANE_GAP, LEFT, Lane, Times, drawn_lane, subtitle
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind
from tpucc.see.svg import Markup, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.sim.timing import Timeline

KEY = "units"
COLUMN = 12.0
"""The width of a column of the strip of parts, in pixels."""
OTHERS = (Kind.BOUNDARY, Kind.HOST, Kind.MOVE)
"""The colours of units that neither compute, finish nor supply."""


def units_svg(program: Program, timeline: Timeline, across: float = WIDTH) -> str:
    """A lane for each unit of the program's machine over a common axis, the parts above. The picture is `across` pixels wide."""
    none = np.zeros(0, np.int64)
    times = Times(timeline.start, timeline.end, none, none, {}, timeline.makespan, (none, none))
    lanes = list(_lanes(program, timeline))
    scale = Scale(0, max(1, times.cycles), LEFT, across - EDGE)
    about = _headline(program, lanes, times.cycles)
    head = heading(about, subtitle(program, times, lanes, scale), (), most=across - 2 * EDGE)
    top = EDGE + head.height + 4
    parts = [head.markup, _strip(program, times, lanes, scale, top, top + 28 + len(lanes) * (LANE + LANE_GAP))]
    top += 28
    for lane in lanes:
        parts += [label(lane.name, EDGE, top + LANE / 2 + 4), drawn_lane(program, times, lane, scale, top)]
        top += LANE + LANE_GAP
    parts.append(cycle_axis(scale, top, program.target.clock_hz))
    return picture(KEY, about, across, top + 44, *parts)


def _lanes(program: Program, timeline: Timeline) -> Iterator[Lane]:
    """The units with their instructions, in the machine's order; units of one colour stand together."""
    engine, colours = program.machine.engine_of[program.instructions["opcode"]], _colours(program.machine)
    in_order = list(dict.fromkeys(colours[unit.engine] for unit in program.machine.units))
    for unit in sorted(program.machine.units, key=lambda unit: in_order.index(colours[unit.engine])):
        own = np.flatnonzero((engine == unit.engine) & (timeline.end > timeline.start))
        yield Lane(unit.word, colours[unit.engine], timeline.start[own], timeline.end[own], own)


def _colours(machine: Machine) -> dict[IntEnum, Kind]:
    """The colour of each unit: of one that fills the queue of a matrix unit, the matrix unit's."""
    account, queue = machine.account, machine.queue
    found = {} if account is None else {account.supplies: Kind.WEIGHTS, account.finishes: Kind.VECTOR, account.computes: Kind.MATRIX}
    if queue is not None:
        used = (*machine.touching(writing=queue.place), *machine.touching(reading=queue.used))
        found |= {spec.engine: Kind.MATRIX for spec in used}
    rest = (unit.engine for unit in machine.units if unit.engine not in found)
    return found | {engine: OTHERS[place % len(OTHERS)] for place, engine in enumerate(rest)}


def _strip(program: Program, times: Times, lanes: Sequence[Lane], scale: Scale, top: float, bottom: float) -> Markup:
    """The parts of the program, which are the kinds of its layers, as forward and backward: in each column the part that the units work
    most for. Where a stretch is too short for its part's name, the name stands higher, if there is room between others."""
    of = [layer.kind or shown(layer.name) for layer in program.layers]
    kinds = tuple(dict.fromkeys(of))
    number = np.array([kinds.index(kind) for kind in of], np.int64)[program.layer_of]
    edges = np.linspace(scale.low, scale.high, max(1, int((scale.end - scale.start) / COLUMN)) + 1)
    work = np.zeros((len(kinds), len(edges) - 1))
    for lane in lanes:
        for kind in range(len(kinds)):
            own = number[lane.instructions] == kind
            work[kind] += coverage(lane.starts[own], lane.ends[own], edges)
    most = work.argmax(axis=0)
    first = np.flatnonzero(np.diff(most, prepend=-1))
    drawn, free = [label("part", EDGE, top + 14, SMALL, "soft")], scale.start
    for kind, start, end in zip(most[first].tolist(), edges[first].tolist(), [*edges[first[1:]].tolist(), scale.high], strict=True):
        words, left, right = kinds[kind], scale(start), scale(end)
        drawn.append(line(left, top, left, bottom, "grid"))
        if right - left > text_width(words, SMALL) + 8:
            drawn.append(label(words, left + 4, top + 14))
        elif left >= free and (after := left + 8 + text_width(words, SMALL)) <= scale.end:
            drawn.append(label(words, left + 4, top))
            free = after
        hover = title(f"{words} · cycles {round(start):,}–{round(end):,}")
        drawn.append(tag("rect", hover, x=left, y=top, width=right - left, height=20, fill_opacity=0))
    return joined(drawn)


def _headline(program: Program, lanes: list[Lane], cycles: int) -> str:
    """The unit that works most: `digits: 27,738 cycles; memory is at work for 41 % of them`."""
    words = f"{program.title}: {counted(cycles, 'cycle')}"
    busy = {lane.name: int((lane.ends - lane.starts).sum()) for lane in lanes}
    most = max(busy, key=lambda name: busy[name], default="")
    return f"{words}; {most} is at work for {percent(busy[most], cycles)} of them" if most and busy[most] else words
