"""An allocation as a picture: time to the right, rows upwards, a box for each buffer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.quantities import numbers
from tpucc.lowering.liveness import largest_live_sum
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives
from tpucc.see.charts.chart import Scale, foot_axis, row_axis, ticks
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind, ink_line
from tpucc.see.svg import Markup, joined, kind_rect, label, picture, tag, title
from tpucc.see.text import SMALL

WIDTH, HEIGHT, LEFT, RIGHT = 900.0, 420.0, 90.0, 800.0
COLUMNS, LINES = 60, 16
NAMES = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def lives_svg(lives: Lives, starts: Int64, words: str, host: int = 0) -> str:
    """An SVG of the allocation, with the peak and the rows that are alive at each instruction's end at most: no allocation has fewer.

    The first `host` rows are the host's, and don't count. Where two buffers have the same rows at the same time, both are marked.
    """
    words += f"; peak and alive leave out the lowest {counted(host, 'row')}, the host's" if host else ""
    head = heading("Where buffers live", words, (), most=WIDTH - 2 * EDGE)
    end, peak = int(lives.last.max(initial=0)) + 1, max(1, lives.peak(starts))
    alive = int(largest_live_sum(lives.first, lives.last, lives.rows))
    top = EDGE + head.height + 20
    across, up = Scale(0, end, LEFT, RIGHT), Scale(0, max(peak, host + alive), top + HEIGHT, top)
    boxes = [_box(lives, starts, b, across, up) for b in range(len(starts))]
    boxes += [_host(up(host), up(0))] if host else []
    boxes += [_shared(lives, starts, pair, across, up) for pair in sharing(lives, starts)]
    axis = foot_axis(across, top + HEIGHT, "instructions", ticks(end), numbers(ticks(end)))
    least = up(host + alive)
    lines = [_line(f"peak {peak - host:,}", up(peak), up(peak)), _line(f"alive {alive:,}", least, max(least, up(peak) + 15))]
    return picture("lives", words, WIDTH, top + HEIGHT + 46, head.markup, row_axis(up, LEFT, RIGHT, "rows"), *lines, *boxes, axis)


def sharing(lives: Lives, starts: Int64) -> Iterator[tuple[int, int]]:
    """The pairs of buffers that have a row in common while both are alive."""
    ends = starts + lives.rows
    for b in range(len(starts)):
        both = (lives.first <= lives.last[b]) & (lives.last >= lives.first[b]) & (starts < ends[b]) & (ends > starts[b])
        yield from ((b, b + 1 + other) for other in np.flatnonzero(both[b + 1 :]).tolist())


def _shared(lives: Lives, starts: Int64, pair: tuple[int, int], across: Scale, up: Scale) -> Markup:
    """A frame around the rows that two buffers share, at the instructions at which they do."""
    both = list(pair)
    left, right = across(int(lives.first[both].max())), across(int(lives.last[both].min()) + 1)
    low, high = up(int(starts[both].max())), up(int((starts + lives.rows)[both].min()))
    said = title(f"buffers {pair[0]} and {pair[1]} share rows")
    place = {"x": left, "y": high, "width": right - left, "height": low - high}
    return tag("rect", said, attributes={**ink_line("alarm"), **place}, fill="none", stroke_width=2)


def _box(lives: Lives, starts: Int64, b: int, across: Scale, up: Scale) -> Markup:
    first, last, start, rows = (int(column[b]) for column in (lives.first, lives.last, starts, lives.rows))
    left, right, low, high = across(first), across(last + 1), up(start), up(start + rows)
    said = title(f"buffer {b}\nrows {start:,}–{start + rows - 1:,} · instructions {first:,}–{last:,}")
    box = kind_rect(Kind.MATRIX, left, high, right - left, low - high, said, stroke_width=1.0, fill_opacity=0.7)
    if right - left <= 18 or low - high <= 13:
        return box
    return joined([box, label(str(b), (left + right) / 2, (low + high) / 2 + 4, anchor="middle")])


def _host(high: float, low: float) -> Markup:
    box = kind_rect(Kind.HOST, LEFT, high, RIGHT - LEFT, low - high, title("the host's rows"))
    return joined([box, label("host", (LEFT + RIGHT) / 2, (low + high) / 2 + 4, anchor="middle") if low - high > 13 else Markup("")])


def _line(words: str, y: float, text_y: float) -> Markup:
    line = tag("line", attributes=ink_line("alarm"), x1=LEFT, y1=y, x2=RIGHT, y2=y, stroke_dasharray="6 4")
    return joined([line, label(words, RIGHT + 6, text_y + 4, SMALL, "alarm")])


def lives_text(lives: Lives, starts: Int64) -> str:
    """The same in characters: a buffer is its number, in letters beyond 9; where two meet stands `!` if each row has a line."""
    if len(starts) > len(NAMES):
        return ""
    end, peak = int(lives.last.max(initial=0)) + 1, max(1, int((starts + lives.rows).max(initial=1)))
    grid = np.full((min(LINES, peak), min(COLUMNS, end)), "·")
    for b in range(len(starts)):
        rows = _cells(int(starts[b]), int(starts[b] + lives.rows[b]), peak, grid.shape[0])
        time = _cells(int(lives.first[b]), int(lives.last[b]) + 1, end, grid.shape[1])
        part = grid[rows, time]
        part[...] = np.where(part == "·", NAMES[b], part if peak > LINES or end > COLUMNS else "!")
    width = len(f"{peak:,}")
    lines = ["".join(line) for line in grid[::-1]]
    told = [f"{f'{peak:,}' if n == 0 else '0' if n == len(lines) - 1 else '':>{width}} |{line}" for n, line in enumerate(lines)]
    return "\n".join([*told, "instructions to the right, rows upwards; each digit or letter is a buffer"])


def _cells(low: int, high: int, whole: int, cells: int) -> slice:
    first = max(0, min(cells - 1, low * cells // whole))
    return slice(first, max(first + 1, min(cells, -(-high * cells // whole))))
