"""Fast access to 8-bit values: rows of a memory as a view where they lie regularly, and tables as translations of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tpucc.machines.v1.functions import ParameterBlock
from tpucc.numerics import Int8
from tpucc.sim.memories import RowIndex, offsets


class Grid(NamedTuple):
    """The rows `start + o * pitch + i * stride`, o below `outer` and i below `inner`, in that order."""

    start: int
    outer: int
    inner: int
    pitch: int
    stride: int

    def of(self, memory: Int8, lanes: slice) -> Int8:
        """These rows of `memory` [rows, mxu], their `lanes` alone: a view [outer, inner, lanes]."""
        row, (first, stop, _) = memory.shape[1], lanes.indices(memory.shape[1])
        shape, strides = (self.outer, self.inner, stop - first), (self.pitch * row, self.stride * row, 1)
        view: Int8 = np.ndarray(shape, np.int8, memory, self.start * row + first, strides)
        return view


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
    if len(rows) % inner:
        return rows
    pitch = int(rows[inner] - rows[0]) if inner < len(rows) else 0
    grid = Grid(int(rows[0]), len(rows) // inner, inner, pitch, int(steps[0]))
    return grid if np.array_equal(grid.start + offsets(*grid[1:]), rows) else rows


def taken(memory: Int8, rows: RowsOrGrid, lanes: slice) -> Int8:
    """Rows of `memory`, their `lanes` alone: [rows, lanes], or [outer, inner, lanes] of a grid. A view where they lie regularly."""
    if isinstance(rows, Grid):
        return rows.of(memory, lanes)
    found: Int8 = memory[rows, lanes] if isinstance(rows, slice) else memory[:, lanes][rows]
    return found


def put(memory: Int8, rows: RowsOrGrid, lanes: slice, values: Int8) -> None:
    """Writes values [rows, lanes], or one row for all, into rows of `memory`."""
    if isinstance(rows, Grid):
        view = rows.of(memory, lanes)
        view[...] = values if values.ndim == 1 else values.reshape(*view.shape[:-1], values.shape[-1])
    else:
        memory[rows, lanes] = values if values.ndim == 1 else values.reshape(-1, values.shape[-1])


def looker(block: ParameterBlock) -> LookUp:
    """The block's table on 8-bit values, as a translation of bytes: several times as fast as taking entries by their numbers."""
    table = block["table"].astype(np.int8)[np.arange(256) ^ 0x80].tobytes()

    def look_up(values: Int8) -> Int8:
        return np.frombuffer(values.tobytes().translate(table), np.int8).reshape(values.shape)

    return look_up
