"""The time of a step of training: when each unit is at work, and when it is the one that limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from tpucc.diagnostics import counted
from tpucc.machines.v2.units import Unit
from tpucc.numerics import Int64
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH, Area, Scale, coverage, foot_axis, stacked
from tpucc.see.heading import EDGE, box_sign, heading, legend
from tpucc.see.palette import Kind, kind_paint, solid_paint
from tpucc.see.svg import Markup, ink_rect, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.sim.durations import duration, seconds_unit
from tpucc.target import machine_name
from tpucc.training.roles import Role
from tpucc.training.timing.step_time import StepTime

LEFT, LANE, GAP = 84.0, 30.0, 8.0
"""The room for the names of the units, the height of a lane, and the room between two, in pixels."""
COLUMN = 2.0
"""A lane is drawn in columns of so many pixels, each as high as the unit's share of its time."""
PARTS = 1e12
"""The parts of a second in which times are counted here, as whole numbers."""
KEY = "step-time"
PAINTS = dict(zip(Unit, (Kind.MATRIX, Kind.VECTOR, Kind.BOUNDARY, Kind.WEIGHTS, Kind.HOST), strict=True))


def step_time_svg(name: str, time: StepTime) -> str:
    """A lane for each unit over a common axis, and the parts of the step above: one group of operators after the other."""
    scale = Scale(0, time.seconds, LEFT, WIDTH - EDGE)
    machine = machine_name(time.target.name, time.cores)
    about = f"{name} on {machine}: {duration(time.seconds)} a step; limits: {time.limits}"
    words = f"{counted(len(time.groups), 'group')} of operators, one after the other. A column is as high as the unit's share of its time."
    head = heading(about, words, (), most=WIDTH - 2 * EDGE)
    top = EDGE + head.height
    signs = [(box_sign(solid_paint(Kind.MATRIX)), "limits its group"), (box_sign(kind_paint(Kind.MATRIX)), "at work beside the limit")]
    key = legend(signs, EDGE, top - 6, WIDTH - EDGE)
    top += key.height + 10
    parts = [head.markup, key.markup, _strip(time, scale, top, top + 28 + len(Unit) * (LANE + GAP))]
    top += 28
    starts = np.cumsum([0.0, *(group.seconds for group in time.groups)])[:-1]
    edges = np.linspace(0, time.seconds * PARTS, round((scale.end - scale.start) / COLUMN) + 1)
    across = Scale(0, time.seconds * PARTS, scale.start, scale.end)
    for unit in Unit:
        back = ink_rect("band", scale.start, top, scale.end - scale.start, LANE)
        areas = stacked(_areas(unit, time, (starts * PARTS).astype(np.int64), edges), edges, across, top + LANE, LANE)
        parts += [label(unit, EDGE, top + LANE / 2 + 4), back, *areas]
        top += LANE + GAP
    values = scale.ticks()
    unit_of, factor = seconds_unit(time.seconds)
    texts = [f"{value * factor:g}" for value in values]
    parts.append(foot_axis(scale, top, f"time, {unit_of}", values, texts))
    return picture(KEY, about, WIDTH, top + 50, *parts)


def _areas(unit: Unit, time: StepTime, starts: Int64, edges: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[Area]:
    """The share of each column in which the unit limits its group, and in which it is at work beside another one."""
    bounds = np.array([group.bound is unit for group in time.groups])
    busy = np.array([group.busy[unit] for group in time.groups]) * PARTS
    for words, paint, chosen in (
        ("limits", solid_paint(PAINTS[unit]), bounds),
        ("is at work beside the limit", kind_paint(PAINTS[unit]), ~bounds),
    ):
        spent = int(busy[chosen].sum())
        text = f"{unit} {words}: {percent(spent, int(time.seconds * PARTS))} of the time"
        yield text, paint, coverage(starts[chosen], starts[chosen] + busy[chosen].astype(np.int64), edges)


def _strip(time: StepTime, scale: Scale, top: float, bottom: float) -> Markup:
    """The names of the step's parts where their time begins; of one that is too short for its name, none. The averages of batch
    normalisation, which move between other groups, are part of these."""
    parts, at = [label("part", EDGE, top + 14, SMALL, "soft")], 0.0
    for role, groups in groupby(time.groups, key=lambda group: Role.FORWARD if group.role is Role.STATISTICS else group.role):
        seconds = sum(group.seconds for group in groups)
        left, right = scale(at), scale(at + seconds)
        hover = tag("rect", title(f"{role}: {duration(seconds)}"), x=left, y=top, width=right - left, height=20, fill_opacity=0)
        if right - left > text_width(role, SMALL) + 8:
            parts += [line(left, top, left, bottom, "grid"), label(role, left + 4, top + 14)]
        parts.append(hover)
        at += seconds
    return joined(parts)
