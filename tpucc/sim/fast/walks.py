"""Fast access to 8-bit values: rows of a memory as a view where they lie regularly, and tables as translations of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tpucc.machines.v1.functions import ParameterBlock
from tpucc.numerics import AnyArray, Int8, Int64
from tpucc.sim.memories import RowIndex, numbered, offsets


class Grid(NamedTuple):
    """The rows `start + o * pitch + i * stride`, o below `outer` and i below `inner`, in that order."""

    start: int
    outer: int
    inner: int
    pitch: int
    stride: int

    @property
    def last(self) -> int:
        return self.start + (self.outer - 1) * self.pitch + (self.inner - 1) * self.stride

    def lines(self, top: int, count: int) -> Grid:
        """The lines from `top` on, `count` at most; a line has the rows of one `o`."""
        return self._replace(start=self.start + top * self.pitch, outer=min(count, self.outer - top))

    def of(self, memory: Int8, lanes: slice) -> Int8:
        """These rows of `memory` [rows, mxu], their `lanes` alone: a view [outer, inner, lanes]."""
        row, (first, stop, _) = memory.shape[1], lanes.indices(memory.shape[1])
        shape, strides = (self.outer, self.inner, stop - first), (self.pitch * row, self.stride * row, 1)
        view: Int8 = np.ndarray(shape, np.int8, memory, self.start * row + first, strides)
        return view


class Windows(NamedTuple):
    """Windows of rows that lie regularly: from each row of `first` on, the rows of `window`."""

    first: Grid
    window: Grid

    @property
    def rows(self) -> slice:
        """The rows from the lowest to the highest."""
        return slice(self.first.start, self.first.last + self.window.last + 1)

    @property
    def height(self) -> int:
        """The number of `rows`."""
        return self.first.last + self.window.last + 1 - self.first.start

    def of(self, image: AnyArray) -> AnyArray:
        """The windows in a copy of `rows` [rows, lanes]: a view [outer, inner, outer of a window, inner of a window, lanes]."""
        _, outer, inner, pitch, stride = self.first
        _, height, width, down, right = self.window
        row, value = image.strides
        strides = (pitch * row, stride * row, down * row, right * row, value)
        return np.ndarray((outer, inner, height, width, image.shape[1]), image.dtype, image, 0, strides)


RowsOrGrid = RowIndex | Grid
LookUp = Callable[[Int8], Int8]


def regular(rows: RowIndex) -> RowsOrGrid:
    """The rows as a grid, where they are an ascending one; else the rows themselves."""
    if isinstance(rows, slice) or rows.ndim != 1 or len(rows) < 2:
        return rows
    steps = np.diff(rows)
    if (steps <= 0).any():
        return rows
    turns = np.flatnonzero(steps != steps[0])
    inner = int(turns[0]) + 1 if len(turns) else len(rows)
    return rows if len(rows) % inner else as_grid(rows, len(rows) // inner, inner) or rows


def as_grid(rows: RowIndex, outer: int, inner: int) -> Grid | None:
    """The rows as a grid of outer × inner, if they are one."""
    lines = numbered(rows).reshape(outer, inner)
    start, below, beside = int(lines[0, 0]), int(lines[min(outer - 1, 1), 0]), int(lines[0, min(inner - 1, 1)])
    grid = Grid(start, outer, inner, below - start, beside - start)
    return grid if np.array_equal(grid.start + offsets(*grid[1:]), lines.reshape(-1)) else None


def windows_of(rows: Int64) -> Windows | None:
    """The windows of rows [windows, rows of a window], where they lie regularly."""
    beside = rows[0] - rows[0, 0]
    first, window = regular(rows[:, 0]), regular(beside)
    if isinstance(first, Grid) and isinstance(window, Grid) and np.array_equal(rows, rows[:, :1] + beside):
        return Windows(first, window)
    return None


def taken(memory: Int8, rows: RowsOrGrid, lanes: slice) -> Int8:
    """Rows of `memory`, their `lanes` alone: [rows, lanes], or [outer, inner, lanes] of a grid. A view where they lie regularly."""
    if isinstance(rows, Grid):
        return rows.of(memory, lanes)
    found: Int8 = memory[rows, lanes] if isinstance(rows, slice) else memory[:, lanes][rows]
    return found


def put(memory: Int8, rows: RowsOrGrid, lanes: slice, values: AnyArray) -> None:
    """Writes integers [rows, lanes], or one row for all, into rows of `memory`."""
    if isinstance(rows, Grid):
        view = rows.of(memory, lanes)
        view[...] = values if values.ndim == 1 else values.reshape(*view.shape[:-1], values.shape[-1])
    else:
        memory[rows, lanes] = values


def looker(block: ParameterBlock) -> LookUp:
    """The block's table on 8-bit values, as a translation of bytes: several times as fast as taking entries by their numbers."""
    table = block["table"].astype(np.int8)[np.arange(256) ^ 0x80].tobytes()

    def look_up(values: Int8) -> Int8:
        return np.frombuffer(values.tobytes().translate(table), np.int8).reshape(values.shape)

    return look_up
