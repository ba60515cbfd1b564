"""Spilling: a program whose buffers don't fit the unified buffer all at once.

A scan over the program keeps as many buffers as fit. When an instruction's operands need room, the buffer whose next use is furthest away
leaves (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966). Rows that host memory has already are dropped and
read again later; other rows are written, once, to a new scratch buffer of host memory. What is read and leaves before its use isn't read.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.isa.effects import Bools, Walks, effects
from tpucc.isa.program import HostBuffer
from tpucc.lowering.liveness import BUFFER_FIELDS
from tpucc.lowering.room import too_large
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram
from tpucc.machine.record import Records
from tpucc.machines.v1 import Opcode
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Gaps

_BLANK = np.zeros(1, TILE_RECORD)
"""An instruction without operands."""
for _field in (*BUFFER_FIELDS, "group"):
    _BLANK[_field] = -1


@dataclass(frozen=True, slots=True)
class Stay:
    """A buffer has the unified buffer's rows from `start`, from instruction `first` to instruction `last`, both inclusive."""

    buffer: int
    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Spilled:
    """The instructions with addresses and added transfers, every stay of every buffer, and the host buffers with the scratch ones."""

    instructions: Records
    stays: tuple[Stay, ...]
    host: tuple[HostBuffer, ...]
    spilled_rows: int
    reloaded_rows: int


def spill(tiles: TileProgram) -> Spilled:
    """Addresses for a program that doesn't fit. Raises `LimitError` E0621 when the operands of one instruction don't fit by themselves."""
    spiller = _Spiller(tiles)
    operands = np.stack([tiles.instructions[field] for field in BUFFER_FIELDS], axis=1)
    for index, buffers in enumerate(operands.tolist()):
        spiller.step(index, tuple(buffers))
    return spiller.result()


class _NextUses:
    """For each buffer the instructions that touch it, consumed in order."""

    NEVER = 2**60

    def __init__(self, instructions: Records, buffers: int) -> None:
        position = np.arange(len(instructions))
        touched = [(instructions[field], position) for field in BUFFER_FIELDS]
        buffer = np.concatenate([column[column >= 0] for column, _ in touched])
        where = np.concatenate([at[column >= 0] for column, at in touched])
        order = np.lexsort((where, buffer))
        self._uses: list[int] = where[order].tolist()
        self._at: list[int] = np.searchsorted(buffer[order], np.arange(buffers)).tolist()
        self._end: list[int] = np.searchsorted(buffer[order], np.arange(buffers), side="right").tolist()

    def after(self, buffer: int, index: int) -> int:
        """The first use after instruction `index`, or `NEVER`. Asked with ascending indices."""
        at, end = self._at[buffer], self._end[buffer]
        while at < end and self._uses[at] <= index:
            at += 1
        self._at[buffer] = at
        return self._uses[at] if at < end else self.NEVER


class _Contents:
    """Which rows of a buffer hold values, which of these host memory holds too, and where there: `home` is the first host row, or -1."""

    __slots__ = ("home", "saved", "written")

    def __init__(self, rows: int) -> None:
        self.written: Bools = np.zeros(rows, np.bool_)
        self.saved: Bools = np.zeros(rows, np.bool_)
        self.home = -1


class _Spiller:
    """The scan's state: where each resident buffer lies, since when, and what it holds."""

    def __init__(self, tiles: TileProgram) -> None:
        self._tiles = tiles
        self._target: Walks = effects(tiles.instructions).target
        self._uses = _NextUses(tiles.instructions, len(tiles.buffers))
        self._gaps = Gaps(tiles.target.unified_buffer_rows)
        self._start: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._touched: dict[int, int] = {}
        self._reads: dict[int, list[int]] = {}
        """Of each resident buffer the transfers that read it from host memory, until something else touches it."""
        self._dropped: list[int] = []
        """The instructions that are left out."""
        self._next: dict[int, int] = {}
        self._far: list[tuple[int, int]] = []
        self._contents: dict[int, _Contents] = {}
        self._stays: list[Stay] = []
        self._host = list(tiles.host)
        self._host_end = max((buffer.start + buffer.rows for buffer in tiles.host), default=0)
        self._code: list[int] = []
        self._bases: list[tuple[int, ...]] = []
        self._added: list[bytes] = []
        self.spilled_rows = 0

    def step(self, index: int, operands: tuple[int, ...]) -> None:
        """Instruction `index`, with the buffers of its operands (-1 for none)."""
        needed = tuple(dict.fromkeys(buffer for buffer in operands if buffer >= 0))
        self._bring(needed, index)
        self._emit(index, *(self._start[buffer] if buffer >= 0 else 0 for buffer in operands))
        reads = self._tiles.instructions["opcode"][index] == Opcode.READ_HOST_MEMORY
        for buffer in needed:
            self._touched[buffer] = len(self._code) - 1
            if reads and buffer in self._reads:
                self._reads[buffer].append(len(self._code) - 1)
            else:
                self._reads.pop(buffer, None)
        self._note_written(index, operands[2])
        for buffer in needed:
            self._pass(buffer, index)

    def result(self) -> Spilled:
        tiles = self._tiles.instructions
        added = np.frombuffer(b"".join(self._added), TILE_RECORD)  # to join arrays of records takes a hundred times as long
        code = np.concatenate([tiles, added])[np.array(self._code, np.int64)]
        bases = np.array(self._bases, np.uint32).reshape(-1, len(BUFFER_FIELDS))
        for column, field in enumerate(BUFFER_FIELDS):
            code[field.removesuffix("_buffer")] += bases[:, column]
        kept = np.ones(len(code), np.bool_)
        kept[self._dropped] = False
        place: Int64 = np.cumsum(kept) - kept  # of one that is left out the next one's
        stays = (replace(stay, first=int(place[stay.first]), last=int(place[stay.last])) for stay in self._stays)
        read = [int(each["inner"][each["opcode"] == Opcode.READ_HOST_MEMORY].sum()) for each in (code[kept], tiles)]
        return Spilled(code[kept], tuple(stays), tuple(self._host), self.spilled_rows, read[0] - read[1])

    def _bring(self, needed: Sequence[int], index: int) -> None:
        """Makes all of `needed` resident."""
        missing = [buffer for buffer in needed if buffer not in self._start]
        if all(self._place(buffer, needed) for buffer in missing):
            return
        for buffer in sorted(self._start):
            self._evict(buffer)
        if not all(self._place(buffer, needed) for buffer in needed):
            raise too_large(self._tiles, needed, index)

    def _place(self, buffer: int, needed: Sequence[int]) -> bool:
        """Finds rows for a buffer, evicting others than `needed`, and restores what it held."""
        if buffer in self._start:
            return True
        rows = self._tiles.buffers[buffer].rows
        start = self._gaps.take(rows)
        while start < 0 and (victim := self._furthest(needed)) >= 0:
            self._evict(victim)
            start = self._gaps.take(rows)
        if start < 0:
            return False
        self._start[buffer], self._since[buffer], self._reads[buffer] = start, len(self._code), []
        self._restore(buffer)
        return True

    def _furthest(self, needed: Sequence[int]) -> int:
        """The resident buffer outside `needed` whose next use is furthest away; -1 for none."""
        kept = []
        victim = -1
        while self._far and victim < 0:
            entry = heapq.heappop(self._far)
            buffer = entry[1]
            if buffer not in self._start or self._next[buffer] != -entry[0]:
                continue
            if buffer in needed:
                kept.append(entry)
            else:
                victim = buffer
        for entry in kept:
            heapq.heappush(self._far, entry)
        return victim

    def _evict(self, buffer: int) -> None:
        """Saves what host memory doesn't hold, and frees the rows."""
        contents = self._contents.get(buffer)
        if contents is not None:
            for first, end in _runs(contents.written & ~contents.saved):
                self._transfer(Opcode.WRITE_HOST_MEMORY, buffer, first, end - first)
                self.spilled_rows += end - first
            contents.saved |= contents.written
        if unused := self._reads.pop(buffer, None):
            self._dropped += unused
            self._touched.pop(buffer)
        self._leave(buffer)

    def _restore(self, buffer: int) -> None:
        contents = self._contents.get(buffer)
        if contents is not None:
            for first, end in _runs(contents.saved):
                self._transfer(Opcode.READ_HOST_MEMORY, buffer, first, end - first)
                self._reads[buffer].append(len(self._code) - 1)

    def _leave(self, buffer: int) -> None:
        start, since = self._start.pop(buffer), self._since.pop(buffer)
        if self._touched.get(buffer, -1) >= since:
            self._stays.append(Stay(buffer, start, since, self._touched[buffer]))
        self._gaps.give(start, self._tiles.buffers[buffer].rows)

    def _pass(self, buffer: int, index: int) -> None:
        """The instruction is done with the buffer: it waits for its next use, or leaves for good."""
        following = self._uses.after(buffer, index)
        if following == _NextUses.NEVER:
            self._leave(buffer)
            return
        self._next[buffer] = following
        heapq.heappush(self._far, (-following, buffer))

    def _note_written(self, index: int, buffer: int) -> None:
        if buffer < 0:
            return
        if buffer not in self._contents:
            self._contents[buffer] = _Contents(self._tiles.buffers[buffer].rows)
        contents, rows = self._contents[buffer], self._target.rows(index)
        contents.written[rows] = True
        home = self._tiles.buffers[buffer].home
        contents.saved[rows] = home >= 0
        if home >= 0:
            contents.home = self._tiles.host[home].start

    def _transfer(self, opcode: Opcode, buffer: int, first: int, rows: int) -> None:
        """A host transfer of some rows of a resident buffer, from or to its place in host memory."""
        contents = self._contents[buffer]
        if contents.home < 0:
            contents.home = self._scratch(buffer)
        record, reads = _BLANK.copy(), opcode is Opcode.READ_HOST_MEMORY
        field = "dest" if reads else "ub"
        record["opcode"], record["outer"], record["inner"] = opcode, 1, rows
        record["host"], record[field], record[f"{field}_buffer"] = contents.home + first, self._start[buffer] + first, buffer
        record["layer"] = self._tiles.buffers[buffer].layer
        self._added.append(record.tobytes())
        self._emit(len(self._tiles.instructions) + len(self._added) - 1, 0, 0, 0)
        self._touched[buffer] = len(self._code) - 1

    def _scratch(self, buffer: int) -> int:
        """A new host buffer with the rows of `buffer`; its first row."""
        virtual, start = self._tiles.buffers[buffer], self._host_end
        self._host.append(HostBuffer(f"scratch:{virtual.name}", "scratch", start, virtual.rows))
        self._host_end += virtual.rows
        return start

    def _emit(self, instruction: int, *bases: int) -> None:
        """The next instruction: its index among the tile program's and, after them, the added ones, and what to add to its rows."""
        self._code.append(instruction)
        self._bases.append(bases)


def _runs(mask: Bools) -> list[tuple[int, int]]:
    """The stretches of consecutive true entries, as [start, end)."""
    if mask.all():
        return [(0, len(mask))] if len(mask) else []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    ends: Int64 = edges.reshape(-1, 2)
    return [(int(first), int(end)) for first, end in ends]
