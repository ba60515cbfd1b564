"""An allocation as a picture: time to the right, rows upwards, a box for each buffer."""

from __future__ import annotations

import numpy as np

from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives
from tpucc.viz.charts.chart import Scale, row_axis
from tpucc.viz.heading import EDGE, heading
from tpucc.viz.palette import Kind
from tpucc.viz.svg import joined, kind_rect, label, picture, title

WIDTH, HEIGHT = 900.0, 420.0
COLUMNS, LINES = 60, 16
NAMES = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def lives_svg(lives: Lives, starts: Int64, words: str) -> str:
    """An SVG of the allocation."""
    head = heading("Where buffers live", words, ())
    end, peak = int(lives.last.max(initial=0)) + 1, max(1, int((starts + lives.rows).max(initial=1)))
    top = EDGE + head.height + 20
    across, up = Scale(0, end, 90.0, WIDTH - 30), Scale(0, peak, top + HEIGHT, top)
    boxes = []
    for b in range(len(starts)):
        first, last, start, rows = (int(column[b]) for column in (lives.first, lives.last, starts, lives.rows))
        left, right, low, high = across(first), across(last + 1), up(start), up(start + rows)
        said = title(f"buffer {b}\nrows {start:,}–{start + rows - 1:,} · instructions {first:,}–{last:,}")
        boxes.append(kind_rect(Kind.MATRIX, left, high, right - left, low - high, said, stroke_width=1.0, fill_opacity=0.7))
        if right - left > 18 and low - high > 12:
            boxes.append(label(str(b), (left + right) / 2, (low + high) / 2 + 4, anchor="middle"))
    return picture("lives", words, WIDTH, top + HEIGHT + 30, head.markup, row_axis(up, 90.0, WIDTH - 30, "rows"), joined(boxes))


def lives_text(lives: Lives, starts: Int64) -> str:
    """The same in characters: a buffer is its number, in letters beyond 9; where two meet stands `!`."""
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
    return "\n".join(f"{f'{peak:,}' if n == 0 else '0' if n == len(lines) - 1 else '':>{width}} |{line}" for n, line in enumerate(lines))


def _cells(low: int, high: int, whole: int, cells: int) -> slice:
    first = max(0, min(cells - 1, low * cells // whole))
    return slice(first, max(first + 1, min(cells, -(-high * cells // whole))))
