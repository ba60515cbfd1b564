"""Tile instructions, one call each, collected as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, Unpack

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
_BATCH = 1 << 14


class Fields(TypedDict, total=False):
    """The fields of a `TILE_RECORD` beside the opcode and the layer, of which an instruction has some."""

    flags: int
    function: int
    host: int
    ub: int
    ub2: int
    dest: int
    acc: int
    index: int
    outer: int
    inner: int
    ub_pitch: int
    ub_stride: int
    ub2_pitch: int
    ub2_stride: int
    dest_pitch: int
    dest_stride: int
    window_outer: int
    window_inner: int
    ub_buffer: int
    ub2_buffer: int
    dest_buffer: int
    group: int


_ABSENT = {name: NONE if name in ("ub_buffer", "ub2_buffer", "dest_buffer", "group") else 0 for name in Fields.__annotations__}


class Emitter:
    """Collects instructions in program order. `layer` is the layer that the next ones belong to.

    Rows and steps are given in rows of values; in the unified buffer, one is `bytes_per_value` rows.
    """

    def __init__(self, layout: Layout, loaded: Iterable[int] = ()) -> None:
        """`loaded` are buffers that have been read from the host already."""
        self.layer = 0
        self.groups: list[int] = []
        self._layout = layout
        self._bytes_per_value = layout.plan.format.bytes_per_value
        self._format_flag = int(encoding_of(layout.plan.format).flag)
        self._opcodes: list[int] = []
        self._layers: list[int] = []
        self._fields: list[Fields] = []
        self._done: list[Records] = []
        self._block = NONE
        self._loaded = set(loaded)

    def instructions(self) -> Records:
        """All instructions so far, as an array of `TILE_RECORD`."""
        self._flush()
        return np.concatenate(self._done)

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
            self._add(_READ, host=place.start, outer=1, inner=place.rows, dest_buffer=beside)
        for beside in together:
            self.complete(beside)

    def complete(self, buffer: int) -> None:
        """All rows of the buffer are computed: writes it wherever it is an output."""
        rows = self._layout.buffers[buffer].rows
        for host in self._layout.exits.get(buffer, ()):
            self._add(_WRITE, host=host, outer=1, inner=rows, ub_buffer=buffer)

    def interrupt(self, step: int) -> None:
        """The host takes its turn."""
        self._add(_INTERRUPT, index=step)

    def configure(self, block: int) -> None:
        """Makes a parameter block the current one, if it isn't."""
        if block != self._block:
            self._block = block
            self._add(_CONFIGURE, index=block)

    def multiply(self, x: int, start: int, piece: Walk, tensor: int, group: int, acc: int, tile: int, accumulate: bool) -> None:
        """The rows of buffer `x` that `piece` walks as its tensor number `tensor`, from row `start` on, times `tile`, or times the tile in
        use when that is -1; the sums begin at row `acc` of the group."""
        flags = (_SWITCH if tile >= 0 else 0) | (_ACCUMULATE if accumulate else 0) | self._format_flag
        pitch, stride = piece.pitches[tensor], piece.strides[tensor]
        dense = piece.outer == 1 and (stride == 1 or piece.inner == 1)
        pitch, stride = (0, 0) if dense else self._in_bytes(pitch, stride)
        self._add(
            _MULTIPLY if dense else _CONVOLVE,
            flags=flags,
            ub=start * self._bytes_per_value,
            ub_pitch=pitch,
            ub_stride=stride,
            ub_buffer=x,
            acc=acc,
            group=group,
            index=max(tile, 0),
            outer=piece.outer,
            inner=piece.inner,
        )

    def activate(self, group: int, acc: int, y: int, start: int, piece: Walk) -> None:
        """The sums from row `acc` of the group on, to the rows of buffer `y` that `piece` walks as its first tensor."""
        pitch, stride = self._in_bytes(piece.pitches[0], piece.strides[0])
        self._add(
            _ACTIVATE,
            flags=self._format_flag,
            acc=acc,
            group=group,
            dest=start * self._bytes_per_value,
            dest_pitch=pitch,
            dest_stride=stride,
            dest_buffer=y,
            outer=piece.outer,
            inner=piece.inner,
        )

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
        starts = self._in_bytes(*(access.start + start for access, start in zip(accesses, piece.starts, strict=True)))
        pitches, strides = self._in_bytes(*piece.pitches), self._in_bytes(*piece.strides)
        fields = Fields(
            flags=int(Flag.SPLAT) * splats[0] | self._format_flag,
            function=int(function),
            ub=starts[0],
            ub_pitch=pitches[0],
            ub_stride=strides[0],
            ub_buffer=sources[0],
            dest=starts[-1],
            dest_pitch=pitches[-1],
            dest_stride=strides[-1],
            dest_buffer=y,
            outer=piece.outer,
            inner=piece.inner,
        )
        if len(sources) == 2:
            fields["flags"] |= int(Flag.SPLAT2) * splats[1]
            fields |= Fields(ub2=starts[1], ub2_pitch=pitches[1], ub2_stride=strides[1], ub2_buffer=sources[1])
        self._add(_VECTOR, **fields)

    def pool(self, function: Function, piece: Walk, region: Region, x: int, y: int) -> None:
        """The windows of a region that `piece` walks: their first pixels in buffer `x`, their results in buffer `y`."""
        (pitch, dest_pitch), (stride, dest_stride) = self._in_bytes(*piece.pitches), self._in_bytes(*piece.strides)
        window_pitch, window_stride = self._in_bytes(*region.steps)
        self._add(
            _POOL,
            flags=self._format_flag,
            function=int(function),
            ub=(region.x.start + piece.starts[0]) * self._bytes_per_value,
            ub_pitch=pitch,
            ub_stride=stride,
            ub_buffer=x,
            ub2_pitch=window_pitch,
            ub2_stride=window_stride,
            window_outer=region.window[0],
            window_inner=region.window[1],
            dest=(region.y.start + piece.starts[1]) * self._bytes_per_value,
            dest_pitch=dest_pitch,
            dest_stride=dest_stride,
            dest_buffer=y,
            outer=piece.outer,
            inner=piece.inner,
        )

    def written(self, record: Records) -> None:
        """One instruction that was written elsewhere; a parameter block that is the current one isn't chosen again."""
        if record["opcode"][0] == _CONFIGURE:
            if record["index"][0] == self._block:
                return
            self._block = int(record["index"][0])
        self._flush()
        record["layer"] = self.layer
        self._done.append(record)

    def _in_bytes(self, *rows: int) -> tuple[int, ...]:
        """Rows of values as rows of the unified buffer."""
        return tuple(row * self._bytes_per_value for row in rows)

    def _add(self, opcode: int, **fields: Unpack[Fields]) -> None:
        self._opcodes.append(opcode)
        self._layers.append(self.layer)
        self._fields.append(fields)
        if len(self._opcodes) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        records = np.zeros(len(self._opcodes), TILE_RECORD)
        records["opcode"], records["layer"] = self._opcodes, self._layers
        for name, absent in _ABSENT.items():
            records[name] = [fields.get(name, absent) for fields in self._fields]
        self._done.append(records)
        self._opcodes, self._layers, self._fields = [], [], []
