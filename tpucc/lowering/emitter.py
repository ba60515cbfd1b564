"""Tile instructions, one call each, collected as rows of numbers."""

from __future__ import annotations

import numpy as np

from tpucc.isa.instructions import Flag, Function, Opcode, Records
from tpucc.lowering.layout import Layout
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.lowering.walks import Walk

NONE = -1
_READ, _WRITE = int(Opcode.READ_HOST_MEMORY), int(Opcode.WRITE_HOST_MEMORY)
_MULTIPLY, _ACTIVATE = int(Opcode.MATRIX_MULTIPLY), int(Opcode.ACTIVATE)
_VECTOR, _CONFIGURE = int(Opcode.VECTOR), int(Opcode.SET_CONFIGURATION)
_SWITCH, _ACCUMULATE = int(Flag.SWITCH), int(Flag.ACCUMULATE)
_COLUMNS = (
    *("opcode", "flags", "function", "host", "ub", "ub2", "dest", "acc", "index", "outer", "inner"),
    *("ub_pitch", "ub_stride", "ub2_pitch", "ub2_stride", "dest_pitch", "dest_stride"),
    *("ub_buffer", "ub2_buffer", "dest_buffer", "group", "layer"),
)
_BATCH = 1 << 14


class Emitter:
    """Collects instructions in program order. `layer` is the layer that the next ones belong to."""

    def __init__(self, layout: Layout) -> None:
        self.layer = 0
        self.groups: list[int] = []
        self._layout = layout
        self._rows: list[tuple[int, ...]] = []
        self._done: list[Records] = []
        self._block = NONE
        self._loaded: set[int] = set()

    def instructions(self) -> Records:
        """All instructions so far, as an array of `TILE_RECORD`."""
        self._flush()
        return np.concatenate([np.zeros(0, TILE_RECORD), *self._done])

    def group(self, rows: int) -> int:
        """A new accumulator group of `rows` rows."""
        self.groups.append(rows)
        return len(self.groups) - 1

    def require(self, buffer: int) -> None:
        """Reads a buffer that host memory holds, before its first use."""
        home = self._layout.buffers[buffer].home
        if home < 0 or buffer in self._loaded:
            return
        self._loaded.add(buffer)
        place = self._layout.host[home]
        self._add(_READ, 0, 0, place.start, 0, 0, 0, 0, 0, 1, place.rows, 0, 0, 0, 0, 0, 0, NONE, NONE, buffer, NONE, self.layer)
        self.complete(buffer)

    def complete(self, buffer: int) -> None:
        """All rows of the buffer are computed: writes it wherever it is an output."""
        rows = self._layout.buffers[buffer].rows
        for host in self._layout.exits.get(buffer, ()):
            self._add(_WRITE, 0, 0, host, 0, 0, 0, 0, 0, 1, rows, 0, 0, 0, 0, 0, 0, buffer, NONE, NONE, NONE, self.layer)

    def configure(self, block: int) -> None:
        """Makes a parameter block the current one, if it isn't."""
        if block != self._block:
            self._block = block
            self._add(_CONFIGURE, 0, 0, 0, 0, 0, 0, 0, block, 0, 0, 0, 0, 0, 0, 0, 0, NONE, NONE, NONE, NONE, self.layer)

    def multiply(self, x: int, start: int, rows: int, group: int, tile: int, accumulate: bool) -> None:
        """Rows of buffer `x` times `tile`, or times the tile in use when that is -1."""
        flags = (_SWITCH if tile >= 0 else 0) | (_ACCUMULATE if accumulate else 0)
        self._add(_MULTIPLY, flags, 0, 0, start, 0, 0, 0, max(tile, 0), 1, rows, 0, 0, 0, 0, 0, 0, x, NONE, NONE, group, self.layer)

    def activate(self, group: int, y: int, start: int, rows: int) -> None:
        self._add(_ACTIVATE, 0, 0, 0, 0, 0, start, 0, 0, 1, rows, 0, 0, 0, 0, 0, 1, NONE, NONE, y, group, self.layer)

    def vector(self, function: Function, walk: Walk, sources: tuple[int, ...], splats: tuple[bool, ...], y: int) -> None:
        """An element-wise instruction; the walk's last tensor is the result `y`."""
        second = len(sources) == 2
        flags = (Flag.SPLAT if splats[0] else 0) | (Flag.SPLAT2 if second and splats[1] else 0)
        start2, pitch2, stride2 = (walk.starts[1], walk.pitches[1], walk.strides[1]) if second else (0, 0, 0)
        starts = walk.starts[0], start2, walk.starts[-1]
        steps = walk.pitches[0], walk.strides[0], pitch2, stride2, walk.pitches[-1], walk.strides[-1]
        buffers = sources[0], sources[1] if second else NONE, y
        self._add(_VECTOR, int(flags), int(function), 0, *starts, 0, 0, walk.outer, walk.inner, *steps, *buffers, NONE, self.layer)

    def _add(self, *row: int) -> None:
        self._rows.append(row)
        if len(self._rows) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        table = np.array(self._rows, np.int64)
        records = np.zeros(len(table), TILE_RECORD)
        for column, field in enumerate(_COLUMNS):
            records[field] = table[:, column]
        self._done.append(records)
        self._rows = []
