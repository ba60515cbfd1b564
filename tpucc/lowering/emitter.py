"""Tile instructions, one call each, collected as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tpucc.lowering.layout import BufferLayout
from tpucc.lowering.steps import Region, Step, TileWrite
from tpucc.lowering.tensors import Access
from tpucc.lowering.tileprogram import TILE_RECORD
from tpucc.lowering.walks import Walk, nest, walks
from tpucc.machine.instruction import Records
from tpucc.machines.v1 import Flag, Opcode
from tpucc.machines.v1.formats import encoding_of
from tpucc.numerics import Int64

_BATCH = 1 << 14
_ACCUMULATE = Flag.ACCUMULATE.value


_WALKS = {field: (field, f"{field}_pitch", f"{field}_stride", f"{field}_buffer") for field in ("ub", "ub2", "dest")}
"""The fields of a walk: its first row, pitch and stride, and its buffer."""
_ABSENT = {name: -1 if name == "group" or name.endswith("_buffer") else 0 for name in TILE_RECORD.names or () if name != "engines"}
"""The fields of a record, with their values where an instruction doesn't give them."""


class _Multiplies(NamedTuple):
    """One call of `multiply`, of which there are far more than of all others: one multiply for each of the `walks`."""

    walks: tuple[Walk, ...]
    tensor: int
    buffer: int
    start: int
    group: int
    tile: int
    flags: int
    layer: int


class Emitter:
    """Collects instructions in program order. `layer` is the layer that the next ones belong to.

    Rows and steps are given in rows of values; in the unified buffer, one is `bytes_per_value` rows.
    """

    def __init__(self, layout: BufferLayout, loaded: Iterable[int] = ()) -> None:
        """`loaded` are buffers that have been read from the host already."""
        self.layer = 0
        self.groups: list[int] = []
        self._layout = layout
        self._bytes_per_value = layout.plan.format.bytes_per_value
        self._format_flag = int(encoding_of(layout.plan.format).flag)
        self._entries: list[dict[str, int] | _Multiplies] = []
        self._done: list[Records] = []
        self._parameter_block = -1
        self._loaded = set(loaded)
        self._tiles = set[int]()

    def instructions(self) -> Records:
        """All instructions so far, as an array of `TILE_RECORD`."""
        self._flush()
        return np.concatenate(self._done)

    def group(self, rows: int) -> int:
        """A new accumulator group of `rows` rows."""
        self.groups.append(rows)
        return len(self.groups) - 1

    def require(self, buffer: int) -> None:
        """Reads a buffer from host memory before its first use, and the buffers that one transfer reads with it. Nothing for other
        buffers."""
        if buffer in self._loaded or buffer not in self._layout.together:
            return
        together = self._layout.together[buffer]
        self._loaded.update(together)
        for beside in together:
            place = self._layout.host[self._layout.buffers[beside].home]
            self._add(Opcode.READ_HOST_MEMORY, host=place.start, outer=1, inner=place.rows, dest_buffer=beside)
        for beside in together:
            self.complete(beside)

    def complete(self, buffer: int) -> None:
        """Writes a buffer whose rows are all computed to each host buffer of which it is an output."""
        rows = self._layout.buffers[buffer].rows
        for host in self._layout.exits.get(buffer, ()):
            self._add(Opcode.WRITE_HOST_MEMORY, host=host, outer=1, inner=rows, ub_buffer=buffer)

    def interrupt(self, step: int) -> None:
        """Asks the host for its step `step`."""
        self._add(Opcode.INTERRUPT_HOST, index=step)

    def write_tile(self, write: TileWrite) -> None:
        """Writes rows of host memory to a tile of weight memory, unless the tile is written already."""
        if write.tile not in self._tiles:
            self._tiles.add(write.tile)
            home = self._layout.host[self._layout.homes[write.weights][write.column_block]]
            self._add(Opcode.WRITE_WEIGHTS, host=home.start + write.first, outer=1, inner=write.rows, index=write.tile)

    def configure(self, block: int) -> None:
        """Chooses a parameter block, unless it is chosen already."""
        if block != self._parameter_block:
            self._parameter_block = block
            self._add(Opcode.SET_CONFIGURATION, index=block)

    def multiply(self, x: int, start: int, walks: Iterable[Walk], tensor: int, group: int, tile: int, accumulate: bool) -> None:
        """Multiplies the rows of buffer `x` that `walks` visit as their tensor number `tensor`, from row `start` on, by `tile`, or by the
        tile in use where `tile` is -1. The sums go to all rows of the accumulator group, with one multiply for each walk."""
        flags = (_ACCUMULATE if accumulate else 0) | self._format_flag
        self._append(_Multiplies(tuple(walks), tensor, x, start, group, tile, flags, self.layer))

    def activate(self, group: int, y: int, start: int, walks: Iterable[Walk]) -> None:
        """Activates the sums of the group into the rows of buffer `y` that `walks` visit as their first tensor, from row `start` on."""
        acc = 0
        for piece in walks:
            rows = self._walk("dest", y, start + piece.starts[0], piece.pitches[0], piece.strides[0])
            self._add(Opcode.ACTIVATE, piece, flags=self._format_flag, acc=acc, group=group, **rows)
            acc += piece.rows

    def compute(self, region: Region, piece: Walk, sources: tuple[int, ...], y: int) -> None:
        """Computes the rows of a region that `piece` walks: from the buffers `sources`, which its accesses lie in, to buffer `y`."""
        fields, flags = (*("ub", "ub2")[: len(region.sources)], "dest"), self._format_flag
        places = zip(fields, (*sources[: len(region.sources)], y), region.walked, strict=True)
        rows: dict[str, int] = {}
        for (field, buffer, access), start, pitch, stride in zip(places, piece.starts, piece.pitches, piece.strides, strict=True):
            rows |= self._walk(field, buffer, access.start + start, pitch, stride)
        for flag, access in zip((Flag.SPLAT, Flag.SPLAT2), region.sources, strict=False):
            flags |= flag.value if access.tensor.columns == 1 < region.y.tensor.columns else 0
        if region.window is not None:
            first, weights = (0, -1) if region.weights is None else (region.weights.start, sources[-1])
            rows |= self._walk("ub2", weights, first, *region.steps)
            rows["window_outer"], rows["window_inner"] = region.window
        opcode = Opcode.VECTOR if region.window is None else Opcode.POOL
        self._add(opcode, piece, flags=flags, function=region.function.value, **rows)

    def written(self, record: Records) -> None:
        """Adds an instruction that a stage of the user's has written. A parameter block that is chosen already isn't chosen again."""
        if record["opcode"][0] == Opcode.SET_CONFIGURATION:
            if record["index"][0] == self._parameter_block:
                return
            self._parameter_block = int(record["index"][0])
        self._flush()
        record["layer"] = self.layer
        self._done.append(record)

    def _walk(self, field: str, buffer: int, start: int, pitch: int, stride: int) -> dict[str, int]:
        """The fields of a walk over rows of values, in rows of the unified buffer."""
        size, names = self._bytes_per_value, _WALKS[field]
        return {names[0]: start * size, names[1]: pitch * size, names[2]: stride * size, names[3]: buffer}

    def _add(self, opcode: Opcode, piece: Walk | None = None, **fields: int) -> None:
        """Adds an instruction with these fields of `TILE_RECORD`; `piece` has the counts of its walk."""
        if piece is not None:
            fields["outer"], fields["inner"] = piece.outer, piece.inner
        fields["opcode"], fields["layer"] = opcode.value, self.layer
        self._append(fields)

    def _append(self, entry: dict[str, int] | _Multiplies) -> None:
        self._entries.append(entry)
        if len(self._entries) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        """Makes records of the entries."""
        counts = np.array([len(entry.walks) if isinstance(entry, _Multiplies) else 1 for entry in self._entries], np.int64)
        places = np.cumsum(counts) - counts
        records = np.zeros(int(counts.sum()), TILE_RECORD)
        for name, absent in _ABSENT.items():
            records[name] = absent
        kinds: dict[tuple[str, ...], list[int]] = {}
        for number, entry in enumerate(self._entries):
            kinds.setdefault(() if isinstance(entry, _Multiplies) else tuple(entry), []).append(number)
        if unknown := set[str]().union(*kinds) - _ABSENT.keys():
            raise TypeError(f"no tile instruction has {', '.join(unknown)}")
        if numbers := kinds.pop((), []):
            multiplies = [entry for entry in self._entries if isinstance(entry, _Multiplies)]
            _put_multiplies(records, multiplies, places[numbers], self._bytes_per_value)
        for names, numbers in kinds.items():
            columns = np.array([[*entry.values()] for number in numbers if isinstance(entry := self._entries[number], dict)], np.int64).T
            for name, column in zip(names, columns, strict=True):
                records[name][places[numbers]] = column
        self._done.append(records)
        self._entries = []


def _put_multiplies(records: Records, calls: Sequence[_Multiplies], places: Int64, bytes_per_value: int) -> None:
    """Puts the multiplies of each call into `records`, from its place on. Calls with the same walks share a table of them."""
    first: dict[tuple[int, int], int] = {}
    table: list[tuple[int, ...]] = []
    for call in calls:
        if (key := (id(call.walks), call.tensor)) not in first:
            first[key] = len(table)
            table += _rows_of(call.walks, call.tensor)
    opcode, outer, inner, start, pitch, stride, acc = np.array(table, np.int64).T
    counts = np.array([len(call.walks) for call in calls])
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    row = np.repeat([first[id(call.walks), call.tensor] for call in calls], counts) + within
    place = np.repeat(places, counts) + within
    begins = within == 0
    given = np.array([call[2:] for call in calls], np.int64)
    buffer, base, group, tile, flags, layer = np.repeat(given, counts, axis=0).T
    columns = {
        "opcode": opcode[row],
        "flags": flags | np.where(begins & (tile >= 0), Flag.SWITCH.value, 0),
        "outer": outer[row],
        "inner": inner[row],
        "ub": (base + start[row]) * bytes_per_value,
        "ub_pitch": pitch[row] * bytes_per_value,
        "ub_stride": stride[row] * bytes_per_value,
        "ub_buffer": buffer,
        "acc": acc[row],
        "group": group,
        "index": np.where(begins, np.maximum(tile, 0), 0),
        "layer": layer,
    }
    for name, column in columns.items():
        records[name][place] = column


def _rows_of(walks: Sequence[Walk], tensor: int) -> Iterator[tuple[int, ...]]:
    """Of each walk its opcode, its counts, and its rows in the operand and in the accumulators: what all calls with these walks share."""
    acc = 0
    for walk in walks:
        pitch, stride = walk.pitches[tensor], walk.strides[tensor]
        dense = walk.outer == 1 and (stride == 1 or walk.inner == 1)
        opcode, steps = (Opcode.MATRIX_MULTIPLY, (0, 0)) if dense else (Opcode.CONVOLVE, (pitch, stride))
        yield (opcode.value, walk.outer, walk.inner, walk.starts[tensor], *steps, acc)
        acc += walk.rows


# One step on one part of the batch, while its instructions are written: its buffers and its walks.


@dataclass(frozen=True, slots=True, eq=False)
class Emission:
    """A step on one part of the batch. Its instructions go to `emitter`. `is_last` says that they complete all rows of the step's
    result."""

    step: Step
    part: int
    layout: BufferLayout
    emitter: Emitter
    is_last: bool = True

    @property
    def results(self) -> range:
        """The buffers of the result, one for each column block."""
        return self.layout.column_blocks(self.step.result, self.part)

    def of(self, step: Step, *, is_last: bool) -> Emission:
        """The emission of `step`, which is a part of this emission's step."""
        return replace(self, step=step, is_last=self.is_last and is_last)

    def buffer(self, access: Access, block: int) -> int:
        """The buffer of a column block of a value, or of its only block. It is read from the host if it isn't in the unified buffer yet."""
        blocks = self.layout.column_blocks(access.tensor, self.part)
        buffer = blocks[min(block, len(blocks) - 1)]
        self.emitter.require(buffer)
        return buffer

    def complete(self, buffer: int) -> None:
        """Says that the step has written all rows of a buffer of its result that it writes."""
        if self.is_last:
            self.emitter.complete(buffer)

    def compute(self, region: Region, n: int) -> None:
        """Writes the `vector` or `pool` instructions of a region for column block n of the result: one for each two loops over its rows."""
        sources = tuple(self.buffer(access, n) for access in region.accesses)
        if region.parameter_blocks:
            self.emitter.configure(region.parameter_blocks[n])
        for walk in walks(nest(region.y.shape, tuple(access.steps for access in region.walked))):
            self.emitter.compute(region, walk, sources, self.results[n])
