"""Charts for a terminal: the units' lanes over time, and the rows of the unified buffer in use, in characters.

A chart is a list of lines, and a line is a sequence of pieces, each with the `Kind` that gives its colour. The caller decides whether
colours are printed: a chart says the same without them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tpucc.explain.accounting import ROWS
from tpucc.explain.critical import Limit
from tpucc.explain.occupancy import rows_in_use
from tpucc.explain.quantities import number
from tpucc.isa.program import Program
from tpucc.numerics import Float64, Int64
from tpucc.prose import glued, loose, percent
from tpucc.see.charts.chart import WAITS, coverage, ticks
from tpucc.see.charts.timeline import Lane, Times, lanes, stretches
from tpucc.see.palette import Kind
from tpucc.sim.durations import duration, seconds_unit

COLUMNS, LEAST_COLUMNS = 80, 40
"""The widest chart, and the narrowest: a terminal of fewer columns breaks its lines."""
NAMES, SHARES = 11, 7
"""Columns for the lanes' names at the left, and for their shares of the time at the right."""
HEIGHT = 4
"""Lines of the buffer's chart. Each has eight heights, one for each block character: 32 in all."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a line, and what it stands for; None: the terminal's own colour."""

    text: str
    kind: Kind | None = None


Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of a chart: `heights` are a blank, for nothing, and eight more, each higher than the one before. `micro` is the letter
    before the `s` of microseconds."""

    heights: str
    micro: str


BLOCKS = Marks(" ▁▂▃▄▅▆▇█", "µ")
ASCII = Marks(" .:-=+*%#", "u")


def marks_for(encoding: str | None) -> Marks:
    """The block characters, or plain ones where `encoding` has none, or isn't known."""
    try:
        (BLOCKS.heights + BLOCKS.micro).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


@dataclass(frozen=True)
class Canvas:
    """Where a chart is drawn. A line has a name at the left and a share at the right; the cells between them, one character each, divide
    the time from 0 to `cycles`. `columns` is how wide the terminal is."""

    cycles: int
    clock_hz: float
    columns: int = COLUMNS
    marks: Marks = BLOCKS

    @property
    def width(self) -> int:
        """Columns that a line takes."""
        return max(LEAST_COLUMNS, min(COLUMNS, self.columns))

    @property
    def cells(self) -> int:
        """Columns between the names and the shares."""
        return self.width - NAMES - SHARES

    @property
    def edges(self) -> Float64:
        """The cycles at which the cells begin and end, float64 [cells + 1]."""
        return np.linspace(0, self.cycles, self.cells + 1)

    def time(self, cycles: float) -> str:
        """Cycles as seconds: `85.7 ns`."""
        return self._unit(duration(cycles / self.clock_hz))

    def head(self, words: str) -> list[Line]:
        """A sentence above a chart, in as many lines as it takes."""
        return [(Piece(loose(line)),) for line in textwrap.wrap(glued(words), self.width, subsequent_indent="  ", break_on_hyphens=False)]

    def axis(self) -> list[Line]:
        """Two lines: round numbers of cycles, each below the cell where it is reached, and the same in seconds."""
        values = [value for value in ticks(self.cycles, max(2, self.cells // 10)) if value < self.cycles]
        unit, factor = seconds_unit(self.cycles / self.clock_hz)
        places = [int(value / self.cycles * self.cells) for value in values]
        times = [number(round(value / self.clock_hz * factor, 6)) for value in values]
        cycles = [f"{value:,.0f}" if value == round(value) else number(value) for value in values]
        return [
            (Piece(named("cycles") + placed(places, cycles, self.cells)),),
            (Piece(named(self._unit(unit)) + placed(places, times, self.cells)),),
        ]

    def bars(self, shares: Float64) -> str:
        """A character for each share of a cell, 0 to 1. A blank is a share of 0: heights are rounded up, so that a little is seen, too."""
        steps = len(self.marks.heights) - 1
        heights = np.clip(np.ceil(np.round(shares * steps, 6)), 0, steps).astype(np.int64)
        return "".join(self.marks.heights[height] for height in heights.tolist())

    def _unit(self, unit: str) -> str:
        return unit.replace("µ", self.marks.micro)


def timeline_lines(program: Program, times: Times, canvas: Canvas) -> list[Line]:
    """What a column is, five lanes, what the matrix unit waits for, the layers where their time begins, the axis and a legend."""
    if not times.cycles:
        return [(Piece("nothing runs on the device, so there is no timeline"),)]
    each = times.cycles / canvas.cells
    head = canvas.head(f"timeline: a column is {significant(each)} cycles, {canvas.time(each)}; its height the share of work")
    return [*head, *lane_lines(program, times, canvas), _layers(program, times, canvas), *canvas.axis(), *_legend(times, canvas)]


def lane_lines(program: Program, times: Times, canvas: Canvas) -> list[Line]:
    """The lanes alone: the share of each cell's time in which a unit works, and at the right its share of all the program's time. The
    program must take a cycle at least."""
    lines = []
    for lane in lanes(program, times):
        lines.append(_lane(lane, times, canvas))
        if lane.name == "matrix":
            lines.append(_waits(times, canvas))
    return lines


def buffer_lines(program: Program, times: Times, canvas: Canvas) -> list[Line]:
    """How many rows of the unified buffer are in use over time: in each cell the most at once. The top of the chart is the most of all.

    The sentence above also says below which row all buffers lie. That can be more: rows between them may be free.
    """
    moments, rows = rows_in_use(program.residents, times.starts, times.ends)
    if not len(rows) or not times.cycles:
        return [(Piece("nothing is in the unified buffer"),)]
    most, peak, whole = int(rows.max()), program.peak_rows, program.target.unified_buffer_rows
    words = f"unified buffer: at most {most:,} rows in use at once, below row {peak:,} of {whole:,}"
    shares = most_in_cells(moments, rows, canvas.edges) / most
    lines = canvas.head(f"{words}, {percent(peak, whole)}")
    for step in range(HEIGHT - 1, -1, -1):
        name = rows_text(most) if step == HEIGHT - 1 else "0" if step == 0 else ""
        lines.append((Piece(named(name, right=True)), Piece(canvas.bars(np.clip(shares * HEIGHT - step, 0, 1)).rstrip(), Kind.VECTOR)))
    return lines


def most_in_cells(moments: Int64, values: Int64, edges: Float64) -> Int64:
    """The largest of a step function's values in each cell [edge, next edge). It is 0 before the first moment."""
    times, steps = np.concatenate([[-1], moments]), np.concatenate([[0], values, [0]])
    first = np.searchsorted(times, edges[:-1], "right") - 1
    after = np.searchsorted(times, edges[1:], "left")
    bounds = np.stack([first, after], axis=1).reshape(-1)
    return np.maximum.reduceat(steps, bounds)[::2]  # every other result is of what lies from one cell's end to the next one's start


def plain(line: Line) -> str:
    """The line without colours, and without blanks at its end."""
    return "".join(piece.text for piece in line).rstrip()


def significant(value: float) -> str:
    """Three digits that count: `98.6`, `3,950`."""
    return number(float(f"{value:.3g}"))


def rows_text(rows: int) -> str:
    """A number of rows in the columns for names: `98,304`, `1.05 M`."""
    return f"{rows:,}" if rows < 10**6 else f"{rows / 1e6:.3g} M"


def named(name: str, *, right: bool = False) -> str:
    """The left end of a line."""
    return f"{name:>{NAMES - 1}} " if right else f"{name:<{NAMES}}"


def placed(places: Sequence[int], words: Sequence[str], cells: int) -> str:
    """A line of `cells` columns with `|` and a word at each of the places, which ascend. A word is left out where the one before it is in
    the way, or where it would go past the end."""
    from rich.cells import cell_len  # wide characters take two columns

    text, used = "", 0
    for place, word in zip(places, words, strict=True):
        if place >= used and place + 1 + cell_len(word) <= cells:
            text += " " * (place - used) + "|" + word
            used = place + 1 + cell_len(word) + 1
            text += " "
    return text.rstrip()


def _lane(lane: Lane, times: Times, canvas: Canvas) -> Line:
    bars = canvas.bars(coverage(lane.starts, lane.ends, canvas.edges))
    busy = int((lane.ends - lane.starts).sum()) / times.cycles
    return Piece(named(lane.name)), Piece(bars, lane.kind), Piece(_share(busy))


def _share(share: float) -> str:
    """Whole percent, halves rounded up as by `percent`: only what never works has `0 %`."""
    words = "<1 %" if 0 < share < 0.005 else f"{math.floor(100 * share + 0.5)} %"
    return f"{words:>{SHARES}}"


def _waits(times: Times, canvas: Canvas) -> Line:
    """For each cell the letter of the root that is waited for longest there. It is a capital where the waits for all roots together take
    more than half of the cell."""
    none = np.zeros(0, np.int64)
    shares = np.stack([coverage(*times.waits.get(root, (none, none)), canvas.edges) for root in WAITS])
    which, whole = shares.argmax(axis=0).tolist(), shares.sum(axis=0).round(6).tolist()
    letters = [_wait(list(WAITS)[index], share) for index, share in zip(which, whole, strict=True)]
    pieces = [Piece("".join(piece.text for piece in alike), kind) for kind, alike in groupby(letters, lambda piece: piece.kind)]
    waiting = sum(int((ends - starts).sum()) for starts, ends in times.waits.values()) / times.cycles
    return Piece(named("  waits")), *pieces, Piece(_share(waiting))


def _wait(root: Limit, share: float) -> Piece:
    if not share:
        return Piece(" ")
    letter = ROWS[root].letter
    return Piece(letter.upper() if share > 0.5 else letter, WAITS[root].kind)


def _layers(program: Program, times: Times, canvas: Canvas) -> Line:
    """The layers' names where their time begins."""
    from rich.cells import cell_len  # wide characters take two columns

    def cell(cycle: int) -> int:
        return int(cycle / times.cycles * canvas.cells)

    found = stretches(program, times, cell, lambda words: cell_len(words) + 2, longest=20)  # 2: the bar before a name, a blank behind
    return (Piece(named("layer") + placed([int(s.start) for s in found], [s.words for s in found], canvas.cells)),)


def _legend(times: Times, canvas: Canvas) -> Iterator[Line]:
    """The meanings of the letters of the waits, as many to a line as fit."""
    pieces, used = [Piece(named(""))], NAMES
    for root in times.roots:
        words = f"{ROWS[root].letter} {ROWS[root].name}   "
        if used + len(words.rstrip()) > NAMES + canvas.cells + SHARES:
            yield tuple(pieces)
            pieces, used = [Piece(named(""))], NAMES
        pieces += [Piece(words[0], WAITS[root].kind), Piece(words[1:])]
        used += len(words)
    if times.roots:
        yield tuple(pieces)
