"""The timeline: five units at work, cycle by cycle, and why the matrix unit stood still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.accounting import ROWS
from tpucc.explain.attribution import Attribution, attribution
from tpucc.explain.critical import LIMITS, Limit
from tpucc.explain.names import MAX_NAME, shortened, shown, whole
from tpucc.explain.quantities import number
from tpucc.explain.segments import Segments
from tpucc.isa.program import Program
from tpucc.machines.v1 import V1, Engine
from tpucc.numerics import Float64, Int64
from tpucc.prose import percent
from tpucc.see.charts.chart import WAITS, WIDTH, Area, Scale, coverage, cycle_axis, hatch_fill, hatches, matrix_signs, stacked
from tpucc.see.heading import EDGE, heading, legend
from tpucc.see.palette import Kind, solid_paint
from tpucc.see.svg import Markup, ink_rect, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, text_width
from tpucc.sim.durations import duration
from tpucc.sim.timing import Timeline

LEFT = 84.0
LANE, LANE_GAP = 26.0, 10.0
STRETCH = 4.0
"""A lane with more than one interval for so many pixels is drawn in columns of so many, each as high as its share of work. Bars would be
too narrow to be told apart."""
KEY = "timeline"


@dataclass(frozen=True, eq=False)
class Times:
    """When everything happens, in cycles from the program's start; an interval is [start, end).

    `starts`, `ends`: one entry an instruction. `shift_starts`, `shift_ends`: one for each tile that is shifted in. `waits`: for each root
    that the matrix unit waited for, in the order of `chart.WAITS`, the intervals, sorted. `cycles`: the makespan. `turns`: the cycles from
    which on the time is another layer's, and the layers, as the table of layers counts them.
    """

    starts: Int64
    ends: Int64
    shift_starts: Int64
    shift_ends: Int64
    waits: Mapping[Limit, tuple[Int64, Int64]]
    cycles: int
    turns: tuple[Int64, Int64]

    @classmethod
    def of(cls, timeline: Timeline, segments: Segments) -> Times:
        """The times of a timeline, with the waits and the turns of its program's segments."""
        waited = {root: segments.root == LIMITS.index(root) for root in WAITS}
        turns = np.flatnonzero(np.diff(segments.layer, prepend=-1))
        return cls(
            starts=timeline.start,
            ends=timeline.end,
            shift_starts=timeline.tiles.shifting,
            shift_ends=timeline.tiles.shifted,
            waits={root: (segments.start[own], segments.end[own]) for root, own in waited.items() if own.any()},
            cycles=timeline.makespan,
            turns=(segments.start[turns], segments.layer[turns]),
        )

    @property
    def roots(self) -> list[Limit]:
        """The roots of the program's waits, in the order of `chart.WAITS`."""
        return list(self.waits)


@dataclass(frozen=True, eq=False, slots=True)
class Lane:
    """One unit's intervals, sorted, and the instructions that they belong to (-1: none)."""

    name: str
    kind: Kind
    starts: Int64
    ends: Int64
    instructions: Int64


def timeline_svg(program: Program, times: Times, until: int = 0, across: float = WIDTH) -> str:
    """Lanes for host, weights, shift, matrix and activation over a common axis; the layers above, waits hatched.

    The axis ends with the program, or at the cycle `until`, if that is later. The picture is `across` pixels wide.
    """
    scale = Scale(0, max(1, times.cycles, until), LEFT, across - EDGE)
    units = list(lanes(program, times))
    head = heading(headline(program.title, times), subtitle(program, times, units, scale), (), most=across - 2 * EDGE)
    top = EDGE + head.height
    key = legend(matrix_signs(KEY, times.roots), EDGE, top - 6, across - EDGE)
    parts = [hatches(KEY, times.roots), head.markup, key.markup]
    top += key.height + 10
    parts.append(layer_strip(program, times, scale, top, top + 28 + len(units) * (LANE + LANE_GAP)))
    top += 28
    for lane in units:
        parts += [label(lane.name, EDGE, top + LANE / 2 + 4), drawn_lane(program, times, lane, scale, top)]
        top += LANE + LANE_GAP
    parts.append(cycle_axis(scale, top, program.target.clock_hz))
    return picture(KEY, headline(program.title, times), across, top + 44, *parts)


def headline(name: str, times: Times) -> str:
    """The largest share of the matrix unit's time: `mlp0: 453,123 cycles, 61.0 % of them: waits for weight memory`."""
    waits = {root: int((ends - starts).sum()) for root, (starts, ends) in times.waits.items()}
    spent = {Limit.MATRIX_UNIT: times.cycles - sum(waits.values()), **waits}
    most = max(spent, key=lambda limit: spent[limit])
    return f"{name}: {counted(times.cycles, 'cycle')}, {100 * spent[most] / max(1, times.cycles):.1f} % of them: {ROWS[most].name}"


def subtitle(program: Program, times: Times, units: Sequence[Lane], scale: Scale) -> str:
    """The time in seconds, and how to read the lanes of these units."""
    clock = program.target.clock_hz / 1e6
    time = duration(times.cycles / program.target.clock_hz)
    crowded = [lane.name for lane in units if _is_dense(lane, times, scale)]
    column = counted(max(1, round(scale.worth(STRETCH))), "cycle")
    whose = f" of {', '.join(crowded)}" if len(crowded) < len(units) else ""
    bars = f"a column{whose} is {column}, as high as the share of them" if crowded else "a bar is an instruction at its unit"
    return f"{time} at {number(clock)} MHz on {program.machine_title}; {bars}."


def lanes(program: Program, times: Times) -> Iterator[Lane]:
    """The five units at work, in the order in which data passes through them."""
    engine = V1.engine_of[program.instructions["opcode"]]

    def lane(name: str, kind: Kind, unit: Engine) -> Lane:
        own = np.flatnonzero((engine == unit) & (times.ends > times.starts))
        return Lane(name, kind, times.starts[own], times.ends[own], own)

    yield lane("host", Kind.HOST, Engine.HOST)
    yield lane("weights", Kind.WEIGHTS, Engine.WEIGHTS)
    yield Lane("shift", Kind.WEIGHTS, times.shift_starts, times.shift_ends, np.full(len(times.shift_starts), -1))
    yield lane("matrix", Kind.MATRIX, Engine.MATRIX)
    yield lane("activation", Kind.VECTOR, Engine.ACTIVATION)


def _is_dense(lane: Lane, times: Times, scale: Scale) -> bool:
    """Whether the lane has too many intervals for bars, the waits of the matrix unit among them."""
    waits = sum(len(starts) for starts, _ in times.waits.values()) if lane.name == "matrix" else 0
    return (len(lane.starts) + waits) * STRETCH > scale.end - scale.start


def drawn_lane(program: Program, times: Times, lane: Lane, scale: Scale, top: float) -> Markup:
    """A bar for each interval of a lane, or its shares of time where bars would be too narrow."""
    back = ink_rect("band", scale.start, top, scale.end - scale.start, LANE)
    if _is_dense(lane, times, scale):
        edges = np.linspace(scale.low, scale.high, max(1, int((scale.end - scale.start) / STRETCH)) + 1)
        return joined([back, *stacked(_areas(lane, times, edges), edges, scale, top + LANE, LANE)])
    bars, whose = [], attribution(program)
    for start, end, index in zip(lane.starts.tolist(), lane.ends.tolist(), lane.instructions.tolist(), strict=True):
        words = f"{_words(program, whose, lane, index)} · cycles {start:,}–{end:,}"
        left, width = _extent(scale, start, end)
        bars.append(tag("rect", title(words), attributes=solid_paint(lane.kind), x=left, y=top, width=width, height=LANE))
    waits = [_waited(root, *times.waits[root], scale, top) for root in times.roots if lane.name == "matrix"]
    return joined([back, *bars, *waits])


def _extent(scale: Scale, start: int, end: int) -> tuple[float, float]:
    """Left edge and width of a bar. Edges are rounded as they are written, so that bars together are as wide as their time is long."""
    left, right = round(scale(start), 1), round(scale(end), 1)
    return left, right - left


def _words(program: Program, whose: Attribution, lane: Lane, index: int) -> str:
    """What a bar of a lane is: the instruction, and the layer that it belongs to."""
    if index < 0:
        return f"weight {lane.name}"
    spec, layer = program.machine.by_opcode[int(program.instructions["opcode"][index])], int(whose.of[index])
    names = [shown(info.name) for info in whose.layers[layer : layer + 1]]
    return " · ".join([spec.mnemonic, *names, f"instruction {index:,}"])


def _areas(lane: Lane, times: Times, edges: Float64) -> Iterator[Area]:
    """The share of time in which the unit works; of the matrix unit also those in which it waits, by their roots."""
    intervals = [(lane.name, solid_paint(lane.kind), lane.starts, lane.ends)]
    if lane.name == "matrix":
        intervals += [(ROWS[root].name, {"fill": hatch_fill(KEY, root)}, *times.waits[root]) for root in times.roots]
    for words, paint, starts, ends in intervals:
        share = percent(int((ends - starts).sum()), times.cycles)
        yield f"{words}: {share} of the time", paint, coverage(starts, ends, edges)


def _waited(root: Limit, starts: Int64, ends: Int64, scale: Scale, top: float) -> Markup:
    fill, parts = hatch_fill(KEY, root), []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        words, (left, width) = f"{ROWS[root].name} · cycles {start:,}–{end:,}", _extent(scale, start, end)
        parts.append(tag("rect", title(words), x=left, y=top, width=width, height=LANE, fill=fill))
    return joined(parts)


def layer_spans(times: Times) -> list[tuple[int, int, int]]:
    """The turns of the layers, by their start: the layer's number, and the cycles [start, end) that are its, waits included."""
    starts, layers = (column.tolist() for column in times.turns)
    return list(zip(layers, starts, [*starts[1:], times.cycles], strict=False))


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the axis that is layers' time, from `start` to `end` in pixels or columns."""

    start: float
    end: float
    layers: Mapping[str, int]
    """The layers' names, and their cycles in this stretch."""

    @property
    def largest_first(self) -> list[str]:
        """The names of its layers, the layer with the most cycles first."""
        return sorted(self.layers, key=lambda name: -self.layers[name])

    @property
    def words(self) -> str:
        """The name of one layer; of several, the one with the most cycles, and dots: `conv2 …`."""
        name, *others = self.largest_first
        return f"{name} …" if others else name

    @property
    def listed(self) -> str:
        """All of them, the one with the most cycles first, and their cycles."""
        return ", ".join(f"{name} {counted(self.layers[name], 'cycle')}" for name in self.largest_first)

    def with_next(self, other: Stretch) -> Stretch:
        """This stretch and the next one as one."""
        return Stretch(self.start, other.end, dict(Counter(self.layers) + Counter(other.layers)))


def stretches(
    program: Program, times: Times, place: Callable[[int], float], width: Callable[[str], float], longest: int = MAX_NAME
) -> list[Stretch]:
    """The axis in stretches, each with room for its words: a turn that has too little shares one with those behind it, at the end with
    those before it.

    `place` is where a cycle lies on the axis, and `width` what words take. A layer that is computed in parts stands in several stretches.
    """
    found: list[Stretch] = []
    names = shortened([whole(layer.name) for layer in attribution(program).layers], longest)
    for layer, start, end in layer_spans(times):
        turn = Stretch(place(start), place(end), {names[layer]: end - start})
        if found and not _fits(found[-1], width):
            found[-1] = found[-1].with_next(turn)
        else:
            found.append(turn)
    while len(found) > 1 and not _fits(found[-1], width):
        found[-2:] = [found[-2].with_next(found[-1])]
    return [stretch for stretch in found if _fits(stretch, width)]


def _fits(stretch: Stretch, width: Callable[[str], float]) -> bool:
    return width(stretch.words) <= stretch.end - stretch.start


def layer_strip(program: Program, times: Times, scale: Scale, top: float, bottom: float) -> Markup:
    """The layers' names where their time begins, waits for weights included."""
    parts = [label("layer", EDGE, top + 14, SMALL, "soft")]
    for stretch in stretches(program, times, scale, lambda words: text_width(words, SMALL) + 8):
        left, words = stretch.start, stretch.listed
        hover = tag("rect", title(words), x=left, y=top, width=stretch.end - left, height=20, fill_opacity=0)
        parts += [line(left, top, left, bottom, "grid"), label(stretch.words, left + 4, top + 14), hover]
    return joined(parts)
