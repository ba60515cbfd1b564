"""Tile instructions, one call each, collected as rows of numbers."""

from __future__ import annotations

import numpy as np

from tpucc.isa.formats import encoding_of
from tpucc.isa.instructions import Flag, Function, Opcode, Records
from tpucc.lowering.layout import Layout
from tpucc.lowering.tensors import Access
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.lowering.walks import Walk
from tpucc.lowering.workload import Region

NONE = -1
_INTERRUPT = int(Opcode.INTERRUPT_HOST)
_READ, _WRITE = int(Opcode.READ_HOST_MEMORY), int(Opcode.WRITE_HOST_MEMORY)
_MULTIPLY, _CONVOLVE, _ACTIVATE = int(Opcode.MATRIX_MULTIPLY), int(Opcode.CONVOLVE), int(Opcode.ACTIVATE)
_VECTOR, _POOL, _CONFIGURE = int(Opcode.VECTOR), int(Opcode.POOL), int(Opcode.SET_CONFIGURATION)
_SWITCH, _ACCUMULATE = int(Flag.SWITCH), int(Flag.ACCUMULATE)
_COLUMNS = (
    *("opcode", "flags", "function", "host", "ub", "ub2", "dest", "acc", "index", "outer", "inner"),
    *("ub_pitch", "ub_stride", "ub2_pitch", "ub2_stride", "dest_pitch", "dest_stride"),
    *("ub_buffer", "ub2_buffer", "dest_buffer", "group", "layer", "window_outer", "window_inner"),
)
_BATCH = 1 << 14


class Emitter:
    """Collects instructions in program order. `layer` is the layer that the next ones belong to.

    Rows and steps are given in rows of values; in the unified buffer, one of 16-bit values is two rows.
    """

    def __init__(self, layout: Layout) -> None:
        self.layer = 0
        self.groups: list[int] = []
        self._layout = layout
        self._width = layout.plan.format.bytes_per_value
        self._format_flag = int(encoding_of(layout.plan.format).flag)
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
        """Reads a buffer that host memory holds, and those that are read with it, before its first use."""
        if buffer in self._loaded or buffer not in self._layout.together:
            return
        together = self._layout.together[buffer]
        self._loaded.update(together)
        for beside in together:
            place = self._layout.host[self._layout.buffers[beside].home]
            self._add(_READ, 0, 0, place.start, 0, 0, 0, 0, 0, 1, place.rows, 0, 0, 0, 0, 0, 0, NONE, NONE, beside, NONE, self.layer)
        for beside in together:
            self.complete(beside)

    def complete(self, buffer: int) -> None:
        """All rows of the buffer are computed: writes it wherever it is an output."""
        rows = self._layout.buffers[buffer].rows
        for host in self._layout.exits.get(buffer, ()):
            self._add(_WRITE, 0, 0, host, 0, 0, 0, 0, 0, 1, rows, 0, 0, 0, 0, 0, 0, buffer, NONE, NONE, NONE, self.layer)

    def interrupt(self, step: int) -> None:
        """The host takes its turn."""
        self._add(_INTERRUPT, 0, 0, 0, 0, 0, 0, 0, step, 0, 0, 0, 0, 0, 0, 0, 0, NONE, NONE, NONE, NONE, self.layer)

    def configure(self, block: int) -> None:
        """Makes a parameter block the current one, if it isn't."""
        if block != self._block:
            self._block = block
            self._add(_CONFIGURE, 0, 0, 0, 0, 0, 0, 0, block, 0, 0, 0, 0, 0, 0, 0, 0, NONE, NONE, NONE, NONE, self.layer)

    def multiply(self, x: int, start: int, piece: Walk, tensor: int, group: int, acc: int, tile: int, accumulate: bool) -> None:
        """The rows of buffer `x` that `piece` walks as its tensor number `tensor`, from row `start` on, times `tile`, or times the tile in
        use when that is -1; the sums begin at row `acc` of the group."""
        flags = (_SWITCH if tile >= 0 else 0) | (_ACCUMULATE if accumulate else 0) | self._format_flag
        pitch, stride = piece.pitches[tensor], piece.strides[tensor]
        dense = piece.outer == 1 and (stride == 1 or piece.inner == 1)
        steps = (0, 0) if dense else self._in_bytes(pitch, stride)
        opcode = _MULTIPLY if dense else _CONVOLVE
        tail = (max(tile, 0), piece.outer, piece.inner, *steps, 0, 0, 0, 0, x, NONE, NONE, group, self.layer)
        self._add(opcode, flags, 0, 0, start * self._width, 0, 0, acc, *tail)

    def activate(self, group: int, acc: int, y: int, start: int, piece: Walk) -> None:
        """The sums from row `acc` of the group on, to the rows of buffer `y` that `piece` walks as its first tensor."""
        steps = self._in_bytes(piece.pitches[0], piece.strides[0])
        tail = (piece.outer, piece.inner, 0, 0, 0, 0, *steps, NONE, NONE, y, group, self.layer)
        self._add(_ACTIVATE, self._format_flag, 0, 0, 0, 0, start * self._width, acc, 0, *tail)

    def vector(
        self,
        function: Function,
        piece: Walk,
        accesses: tuple[Access, ...],
        sources: tuple[int, ...],
        splats: tuple[bool, ...],
        y: int,
    ) -> None:
        """An element-wise instruction; the last of the accesses that `piece` walks is the result, in buffer `y`."""
        second = len(sources) == 2
        flags = (Flag.SPLAT if splats[0] else 0) | (Flag.SPLAT2 if second and splats[1] else 0) | self._format_flag
        starts = self._in_bytes(*(access.start + start for access, start in zip(accesses, piece.starts, strict=True)))
        start2, pitch2, stride2 = (starts[1], piece.pitches[1], piece.strides[1]) if second else (0, 0, 0)
        steps = self._in_bytes(piece.pitches[0], piece.strides[0], pitch2, stride2, piece.pitches[-1], piece.strides[-1])
        tail = (piece.outer, piece.inner, *steps, sources[0], sources[1] if second else NONE, y, NONE, self.layer)
        self._add(_VECTOR, int(flags), int(function), 0, starts[0], start2, starts[-1], 0, 0, *tail)

    def pool(self, function: Function, piece: Walk, region: Region, x: int, y: int) -> None:
        """The windows of a region that `piece` walks: their first pixels in buffer `x`, their results in buffer `y`."""
        steps = self._in_bytes(piece.pitches[0], piece.strides[0], *region.steps, piece.pitches[1], piece.strides[1])
        starts = self._in_bytes(region.x.start + piece.starts[0], 0, region.y.start + piece.starts[1])
        tail = (piece.outer, piece.inner, *steps, x, NONE, y, NONE, self.layer)
        self._add(_POOL, self._format_flag, int(function), 0, *starts, 0, 0, *tail, window=region.window)

    def _in_bytes(self, *rows: int) -> tuple[int, ...]:
        """Rows of values as rows of the unified buffer."""
        return tuple(row * self._width for row in rows)

    def _add(self, *row: int, window: tuple[int, int] = (0, 0)) -> None:
        self._rows.append((*row, *window))
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
