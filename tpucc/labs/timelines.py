"""What several labs draw: a student's program beside another one, with what more of its cycles are spent on; characters as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.accounting import ROWS, WAIT_ROWS
from tpucc.explain.comparison.compare import spent_more
from tpucc.explain.comparison.pairs import spent
from tpucc.explain.timed import Timed
from tpucc.isa.program import Program
from tpucc.prose import percent
from tpucc.see.charts.chart import coverage
from tpucc.see.charts.textcharts import Canvas, lane_lines, named, plain
from tpucc.see.charts.timeline import timeline_svg
from tpucc.see.heading import EDGE
from tpucc.see.pictures import times_of
from tpucc.see.svg import label, picture
from tpucc.see.text import NORMAL
from tpucc.sim.timing import Timeline

COLUMNS = 72
LINE, CELL = 16.0, 7.5
"""The height of a line of characters in a picture, and the width of a character, in pixels."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A student's program beside one by the name `other`, of which only is known what its cycles are spent on (`rows`, by the rows of the
    accounting): it may be the lab's answer."""

    own: Timed
    other: str
    rows: Mapping[str, int]

    @property
    def cycles(self) -> int:
        return self.own.timeline.makespan

    @property
    def least(self) -> int:
        """The other program's cycles."""
        return sum(self.rows.values())

    def slower(self) -> str:
        """What makes the student's program slower, as `tpucc compare` says it: cycles and what they are spent on. Empty where it isn't."""
        return spent_more(self.rows, spent(self.own), (f"the {self.other}", "yours")) if self.cycles > self.least else ""

    def drawings(self) -> dict[str, Any]:
        """The drawing and the picture of an outcome."""
        return {"drawing": self.text(), "picture": self.svg}

    def svg(self) -> str:
        """The report's timeline of the student's program; the axis ends with the longer of both programs."""
        return timeline_svg(self.own.program, times_of(self.own), self.least)

    def text(self) -> str:
        """The lanes of the student's program in characters; under the matrix unit's, a letter where it waits. Below, a bar as long as the
        other program takes."""
        canvas, times = Canvas(max(1, self.cycles, self.least), 1.0, COLUMNS), times_of(self.own)
        waited = [root for root in WAIT_ROWS if root in times.roots]
        meanings = ", ".join(f"{ROWS[root].letter} {ROWS[root].name}" for root in waited)
        told = f"waits: {meanings}; capitals: most of a column's time" if waited else ""
        total = canvas.marks.heights[-1] * round(canvas.cells * self.least / canvas.cycles)
        parts = [f"yours: {counted(self.cycles, 'cycle')}", *self._lanes(canvas)]
        parts += [f"{self.other}: {counted(self.least, 'cycle')}", named("total") + total, plain(canvas.axis()[0])]
        return "\n".join([*parts, *textwrap.wrap(told, COLUMNS, subsequent_indent="  ")])

    def _lanes(self, canvas: Canvas) -> Iterator[str]:
        """The lanes in which something happens. That of the matrix unit stays, as its waits stand below it without its name."""
        for drawn in lane_lines(self.own.program, times_of(self.own), canvas) if self.cycles else ():
            if (text := plain(drawn)).startswith("matrix") or not text.endswith(" 0 %"):
                yield text


def units_text(program: Program, time: Timeline, other: str, least: int) -> str:
    """The units of any machine in characters, of those that work, with their shares of the time. Below, a bar as long as the `least` cycles
    of something that is named `other`, if there are any."""
    cycles = time.makespan
    canvas = Canvas(max(1, cycles, least), program.target.clock_hz, COLUMNS)
    engines = program.machine.engine_of[program.instructions["opcode"]]
    parts = [f"yours: {counted(cycles, 'cycle')}"]
    for unit in program.machine.units:
        own = np.flatnonzero(engines == unit.engine)
        start, end = time.start[own], time.end[own]
        bars = canvas.bars(coverage(start, end, canvas.edges))
        parts += [f"{named(unit.word)}{bars}{percent(int((end - start).sum()), cycles):>7}"] if len(own) else []
    if least:
        bar = canvas.marks.heights[-1] * round(canvas.cells * least / canvas.cycles)
        parts += [f"{other}: {counted(least, 'cycle')}", named("total") + bar]
    return "\n".join([*parts, plain(canvas.axis()[0])])


def characters_svg(name: str, drawing: str) -> str:
    """A drawing of characters as a picture, with its name above."""
    lines = drawing.splitlines()
    parts = [label(name, EDGE, EDGE + NORMAL, NORMAL, font_weight="bold")]
    for number, line in enumerate(lines, 2):
        parts.append(label(line, EDGE, EDGE + LINE * number, font_family="monospace", style="white-space: pre"))
    return picture("drawing", name, 2 * EDGE + CELL * max(map(len, lines)), 2 * EDGE + LINE * (len(lines) + 1), *parts)
