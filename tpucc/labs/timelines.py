"""Programs beside each other in time: a student's and another one, in one scale, as a picture and in characters."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.accounting import ROWS, WAIT_ROWS
from tpucc.explain.comparison.compare import compare, spent_more
from tpucc.explain.comparison.pairs import spent
from tpucc.explain.segments import matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.program import Program
from tpucc.machines.v1 import SPECS, UNITS, V1, Opcode
from tpucc.numerics import Int64
from tpucc.see.charts.chart import WIDTH, Scale, cycle_axis
from tpucc.see.charts.textcharts import Canvas, lane_lines, named, plain
from tpucc.see.charts.timeline import LANE, LANE_GAP, LEFT, Lane, Times, lanes
from tpucc.see.diagrams.paint import arrow
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import solid_paint
from tpucc.see.svg import Markup, ink_rect, joined, label, line, picture, tag, title
from tpucc.see.text import NORMAL, SMALL, broken, text_width
from tpucc.sim.timing import Timeline, time_program

LANES = {"host": 0, "weights": 1, "matrix": 2, "activation": 3}
"""The engine of each lane that has one."""
COLUMNS = 72
WAITS = 60
"""The most waits that are drawn, each as a line."""


@dataclass(frozen=True)
class Shown:
    """A program with its name in the picture. `numbers` are those that a student knows its instructions by, -1 for one without."""

    name: str
    program: Program
    numbers: Sequence[int] = ()

    @cached_property
    def timeline(self) -> Timeline:
        return time_program(self.program)

    @cached_property
    def times(self) -> Times:
        """The timeline as charts want it."""
        return Times.of(self.timeline, matrix_segments(self.program, self.timeline))

    @property
    def cycles(self) -> int:
        return self.timeline.makespan


@dataclass(frozen=True)
class Reference:
    """A program that is the lab's answer: what its cycles are spent on is told, by the rows of the accounting, and nothing else is drawn.
    An archive for students has no `program`."""

    name: str
    rows: Mapping[str, int]
    program: Program | None

    @property
    def cycles(self) -> int:
        return sum(self.rows.values())


def words(run: Shown | Reference) -> str:
    """A program's name and its cycles."""
    return f"{run.name}: {counted(run.cycles, 'cycle')}"


def slower(own: Shown, other: Shown | Reference) -> str:
    """What makes a program slower than another, as `tpucc compare` says it: cycles and what they are spent on. Empty where it isn't."""
    if own.cycles <= other.cycles:
        return ""
    said, runtime = (f"the {other.name}", own.name), Timed(own.program)
    if isinstance(other, Reference) and other.program is None:
        return spent_more(other.rows, spent(runtime), said)
    assert other.program is not None
    return compare(Timed(other.program), runtime, said=said).on_device


def timelines_text(own: Shown, other: Shown | Reference) -> str:
    """The lanes of a program, at most `COLUMNS` columns wide; under the matrix unit's, a letter where it waits. Below, those of another, or
    of a reference a line as long as it takes."""
    canvas = Canvas(_longest(own, other), 1.0, COLUMNS)
    runs = _drawn(own, other)
    parts = [text for run in runs for text in (words(run), *_lane_texts(run, canvas))]
    if isinstance(other, Reference):
        parts += [words(other), named("total") + canvas.marks.heights[-1] * round(canvas.cells * other.cycles / canvas.cycles)]
    return "\n".join([*parts, plain(canvas.axis()[0]), *_letters(runs)])


def _lane_texts(run: Shown, canvas: Canvas) -> Iterator[str]:
    """The lanes in which something happens. That of the matrix unit stays, as its waits stand below it without its name."""
    for drawn in lane_lines(run.program, run.times, canvas) if run.cycles else ():
        if (text := plain(drawn)).startswith("matrix") or not text.endswith(" 0 %"):
            yield text


def _letters(runs: Sequence[Shown]) -> list[str]:
    """What the letters of the waits mean."""
    waited = {root for run in runs for root in run.times.roots}
    meanings = ", ".join(f"{ROWS[root].letter} {ROWS[root].name}" for root in WAIT_ROWS if root in waited)
    return textwrap.wrap(f"waits: {meanings}; capitals: most of a column's time", COLUMNS, subsequent_indent="  ") if waited else []


def timelines_svg(name: str, own: Shown, other: Shown | Reference, said: str = "") -> str:
    """The lanes of each program over a common axis of cycles, of a reference a bar of its cycles; an arrow leads from what is waited for to
    what waits. Where the first program is slower than the second, the text says why. There is no axis of seconds: the labs' machines have
    no clock that a student knows."""
    runs = _drawn(own, other)
    used = {lane.name for run in runs for lane in lanes(run.program, run.times) if len(lane.starts)}
    told = f"{said}{'; ' if said else ''}a bar is an instruction{', in shift a tile' if 'shift' in used else ''}{_reading(runs)}"
    head = heading(name, told, (), most=WIDTH - 2 * EDGE)
    scale = Scale(0, _longest(own, other), LEFT, WIDTH - EDGE)
    top, parts = EDGE + head.height, [head.markup]
    if why := slower(own, other):
        lines = broken(why, NORMAL, WIDTH - 2 * EDGE)
        parts += [label(part, EDGE, top + 20 * number + NORMAL, NORMAL) for number, part in enumerate(lines)]
        top += 20 * len(lines) + 10
    if thin := _thin(runs):
        parts.append(label(f"thin bars, of one cycle: {', '.join(thin)}", EDGE, top + SMALL, SMALL, "soft"))
        top += 22
    for run in runs:
        undrawn = f"; {len(_found(run)):,} waits, too many to draw" if len(_found(run)) > WAITS else ""
        parts.append(label(f"{words(run)}{undrawn}", EDGE, top + SMALL, font_weight="bold"))
        top += 22
        shown = [lane for lane in lanes(run.program, run.times) if lane.name in used]
        tops = {lane.name: top + number * (LANE + LANE_GAP) for number, lane in enumerate(shown)}
        for name, y in tops.items():
            parts += [label(name, EDGE, y + LANE / 2 + 4), ink_rect("band", scale.start, y, scale.end - scale.start, LANE)]
        parts += _waits(run, {LANES[name]: y for name, y in tops.items() if name in LANES}, scale)
        parts += [_bars(run, lane, scale, tops[lane.name]) for lane in shown]
        top += len(shown) * (LANE + LANE_GAP) + 14
    if isinstance(other, Reference):
        parts.append(label(words(other), EDGE, top + SMALL, font_weight="bold"))
        top += 22
        parts.append(label("total", EDGE, top + LANE / 2 + 4))
        parts.append(ink_rect("soft", scale.start, top, scale(other.cycles) - scale.start, LANE))
        top += LANE + LANE_GAP + 14
    parts.append(cycle_axis(scale, top))
    return picture("timelines", told, WIDTH, top + 44, *parts)


def _drawn(own: Shown, other: Shown | Reference) -> Sequence[Shown]:
    """The programs whose instructions are drawn."""
    return (own, other) if isinstance(other, Shown) else (own,)


def _reading(runs: Sequence[Shown]) -> str:
    """What the arrows are, where there are some."""
    drawn = any(0 < len(_found(run)) <= WAITS for run in runs)
    return ", an arrow leads from what is waited for to what waits" if drawn else ""


def _thin(runs: Sequence[Shown]) -> list[str]:
    """The mnemonics of the instructions that take one cycle, and have a bar."""
    found = {
        Opcode(opcode).mnemonic
        for run in runs
        for lane in lanes(run.program, run.times)
        for opcode in run.program.instructions["opcode"][
            lane.instructions[(lane.ends - lane.starts == 1) & (lane.instructions >= 0)]
        ].tolist()
    }
    return sorted(found)


def _found(run: Shown) -> Int64:
    """The places of the waits."""
    return np.flatnonzero(run.program.instructions["opcode"] == Opcode.SYNCHRONIZE)


def _longest(own: Shown, other: Shown | Reference) -> int:
    return max(1, own.cycles, other.cycles)


def _bars(run: Shown, lane: Lane, scale: Scale, top: float) -> Markup:
    parts = []
    for start, end, index in zip(lane.starts.tolist(), lane.ends.tolist(), lane.instructions.tolist(), strict=True):
        number = run.numbers[index] if 0 <= index < len(run.numbers) else -1
        said = f"instruction {number:,} · " if number >= 0 else ""
        said += f"{Opcode(int(run.program.instructions['opcode'][index])).mnemonic} · " if index >= 0 else "tile · "
        width = max(0.8, scale(end) - scale(start) - 1)
        words = title(f"{said}cycles {start:,}–{end:,}")
        parts.append(tag("rect", words, attributes=solid_paint(lane.kind), x=scale(start), y=top, width=width, height=LANE))
        if number >= 0 and text_width(str(number), SMALL) + 4 <= width:
            parts.append(label(str(number), scale(start) + width / 2, top + LANE / 2 + 4, SMALL, "paper", "middle"))
    return joined(parts)


def _waits(run: Shown, tops: dict[int, float], scale: Scale) -> Iterator[Markup]:
    """From the end of what is waited for to the start of what waits."""
    code = run.program.instructions
    engine, found = V1.engine_of[code["opcode"]], _found(run)
    for index in found.tolist() if len(found) <= WAITS else ():
        for waiting, mask in SPECS[Opcode.SYNCHRONIZE].waits(int(code["index"][index]), int(code["engines"][index])):
            following = np.flatnonzero(engine[index:] == waiting)
            for other in UNITS:
                before = np.flatnonzero(engine[:index] == other)
                if mask >> other & 1 and len(following) and len(before) and waiting in tops and other in tops:
                    ends, starts = scale(int(run.timeline.end[before[-1]])), scale(int(run.timeline.start[index + following[0]]))
                    down = tops[waiting] > tops[other]
                    leaves, arrives = tops[other] + (LANE if down else 0), tops[waiting] + (0 if down else LANE)
                    yield line(ends, leaves, starts, arrives, "alarm", stroke_width=1.5)
                    yield arrow((starts, arrives), math.atan2(arrives - leaves, starts - ends), "alarm")
