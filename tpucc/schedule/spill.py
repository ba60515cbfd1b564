"""Spilling: the allocation of a program whose buffers don't fit the machine's memory of values together.

A scan over the program keeps as many buffers as fit. When an instruction's operands need room, the buffer whose next use is furthest away
leaves (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966). Rows that the buffer's home has are dropped
and read again later; other rows are written, once, to a new scratch buffer. Homes are in the memory that the machine spills to: on v1, host
memory. A read whose rows leave before their use is left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.isa.effects import Bools, Walks, effects
from tpucc.isa.program import HostBuffer
from tpucc.lowering.liveness import BUFFER_FIELDS, largest_live_sum
from tpucc.lowering.room import too_large
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram
from tpucc.machine.instruction import Spec
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocation, Gaps, Stay

_BLANK = np.zeros(1, TILE_RECORD)
"""An instruction without operands."""
for _field in (*BUFFER_FIELDS, "group"):
    _BLANK[_field] = -1


def spill(tiles: TileProgram, needed: int) -> Allocation:
    """The allocation of a program whose buffers don't fit, with the transfers that spill and reload rows; `needed` is the largest sum of
    rows alive at one time before. Raises `LimitError` E0621 when the operands of one instruction don't fit by themselves."""
    operands: list[list[int]] = np.stack([tiles.instructions[field] for field in BUFFER_FIELDS], axis=1).tolist()
    spiller = _Spiller(tiles, operands)
    for index, buffers in enumerate(operands):
        spiller.step(index, buffers)
    return spiller.allocation(needed)


@dataclass(slots=True)
class _Buffer:
    """A buffer during the scan. It is resident where `start` isn't -1."""

    rows: int
    written: Bools
    """Whether each row holds a value."""
    saved: Bools
    """Whether the buffer's home holds the value of each row."""
    uses: list[int]
    """The instructions that will touch it, the next one last."""
    home: int
    """The first row of the home; -1 where there is none yet."""
    start: int = -1
    since: int = 0
    """The number of the first instruction of its stay."""
    last: int = -1
    """The number of the last instruction that touched it."""
    reads: list[int] | None = None
    """The transfers that have read it from its home; None once another instruction has touched it."""


class _Spiller:
    """The state of the scan: for each resident buffer its rows, the beginning of its stay, and which of its rows hold values."""

    def __init__(self, tiles: TileProgram, operands: list[list[int]]) -> None:
        self._tiles, self._machine = tiles, tiles.machine
        self._bring, self._take = self._machine.transfers
        self._target: Walks = effects(tiles.instructions, self._machine).target
        self._gaps = Gaps(self._machine.values.size(tiles.target))
        homes = [tiles.host[each.home].start if each.home >= 0 else -1 for each in tiles.buffers]
        self._buffers = [
            _Buffer(each.rows, np.zeros(each.rows, np.bool_), np.zeros(each.rows, np.bool_), [], home)
            for each, home in zip(tiles.buffers, homes, strict=True)
        ]
        for index in reversed(range(len(operands))):
            for number in {*operands[index]} - {-1}:
                self._buffers[number].uses.append(index)
        self._far: list[tuple[int, int]] = []
        """A heap of the resident buffers by the distance of their next use, the furthest first; some entries are out of date."""
        self._dropped: list[int] = []
        """The instructions that are left out."""
        self._stays: list[Stay] = []
        self._host = list(tiles.host)
        self._host_end = max((buffer.end for buffer in tiles.host), default=0)
        self._code: list[int] = []
        """The instructions: indices of the tile program's and, after them, of the added ones."""
        self._bases: list[tuple[int, ...]] = []
        """The first row of each operand's buffer, for each instruction."""
        self._added: list[bytes] = []
        self._spilled_rows = 0

    def step(self, index: int, operands: Sequence[int]) -> None:
        """Adds instruction `index`. `operands` has the buffers of its operands, -1 for none."""
        needed = tuple(dict.fromkeys(number for number in operands if number >= 0))
        self._make_resident(needed, index)
        self._emit(index, *(self._buffers[number].start if number >= 0 else 0 for number in operands))
        brings = self._tiles.instructions["opcode"][index] == self._bring.opcode
        for number in needed:
            self._touch(self._buffers[number], reads=brings)
        if operands[2] >= 0:
            written, rows = self._buffers[operands[2]], self._target.rows(index)
            written.written[rows] = True
            written.saved[rows] = self._tiles.buffers[operands[2]].home >= 0
        for number in needed:
            buffer = self._buffers[number]
            buffer.uses.pop()
            if buffer.uses:
                heapq.heappush(self._far, (-buffer.uses[-1], number))
            else:
                self._leave(number, buffer)

    def allocation(self, needed: int) -> Allocation:
        tiles = self._tiles.instructions
        added = np.frombuffer(b"".join(self._added), TILE_RECORD)  # to join arrays of records takes a hundred times as long
        code = np.concatenate([tiles, added])[np.array(self._code, np.int64)]
        bases = np.array(self._bases, np.uint32).reshape(-1, len(BUFFER_FIELDS))
        for column, field in enumerate(BUFFER_FIELDS):
            code[field.removesuffix("_buffer")] += bases[:, column]
        kept = np.ones(len(code), np.bool_)
        kept[self._dropped] = False
        place: Int64 = np.cumsum(kept) - kept  # of one that is left out the next one's
        stays = tuple(replace(each, first=int(place[each.first]), last=int(place[each.last])) for each in self._stays)
        extents = [(each.first, each.last, self._buffers[each.buffer].rows) for each in stays]
        first, last, rows = np.array(extents, np.int64).reshape(-1, 3).T
        read = [int(each["inner"][each["opcode"] == self._bring.opcode].sum()) for each in (code[kept], tiles)]
        note = self._note(needed, read[0] - read[1])
        return Allocation(code[kept], stays, largest_live_sum(first, last, rows), tuple(self._host), (note,))

    def _note(self, needed: int, reloaded: int) -> str:
        """The rows that were spilled and reloaded, and why."""
        memory = self._machine.values
        room, home = memory.size(self._tiles.target), self._machine.by_memory[memory.spills_to]
        moved = f"{self._spilled_rows:,} rows were spilled to {home.title} and {reloaded:,} read again"
        if needed > room:
            return f"{moved}: what lives at one time needs {needed:,} rows, and the {memory.title} has {room:,}"
        return (
            f"the allocator found no place for all buffers in the {room:,} rows of the {memory.title}, although at most {needed:,} "
            f"are alive at one time; the built-in spilling placed them: {moved}"
        )

    def _make_resident(self, needed: Sequence[int], index: int) -> None:
        """Makes all buffers that an instruction needs resident. Raises `LimitError` E0621 where they don't fit."""
        if all(self._place(number, needed) for number in needed):
            return
        for number, buffer in enumerate(self._buffers):
            if buffer.start >= 0:
                self._evict(number)
        if not all(self._place(number, needed) for number in needed):
            raise too_large(self._tiles, needed, index)

    def _place(self, number: int, needed: Sequence[int]) -> bool:
        """Makes a buffer resident: finds rows, evicting buffers that aren't `needed`, and reads the rows that its home holds. False if none
        are found."""
        buffer = self._buffers[number]
        if buffer.start >= 0:
            return True
        start = self._gaps.take(buffer.rows)
        while start < 0 and (victim := self._furthest(needed)) >= 0:
            self._evict(victim)
            start = self._gaps.take(buffer.rows)
        if start < 0:
            return False
        buffer.start, buffer.since, buffer.reads = start, len(self._code), []
        for first, end in _runs(buffer.saved):
            self._transfer(self._bring, number, first, end)
        return True

    def _furthest(self, needed: Sequence[int]) -> int:
        """The resident buffer outside `needed` whose next use is furthest away; -1 for none."""
        kept = []
        victim = -1
        while self._far and victim < 0:
            entry = heapq.heappop(self._far)
            number = entry[1]
            if self._buffers[number].start < 0 or self._buffers[number].uses[-1] != -entry[0]:
                continue
            if number in needed:
                kept.append(entry)
            else:
                victim = number
        for entry in kept:
            heapq.heappush(self._far, entry)
        return victim

    def _evict(self, number: int) -> None:
        """Writes the rows that the buffer's home doesn't hold to it, and frees the buffer's rows."""
        buffer = self._buffers[number]
        for first, end in _runs(buffer.written & ~buffer.saved):
            self._transfer(self._take, number, first, end)
            self._spilled_rows += end - first
        buffer.saved |= buffer.written
        if buffer.reads:
            self._dropped += buffer.reads
            buffer.last = -1
        self._leave(number, buffer)

    def _leave(self, number: int, buffer: _Buffer) -> None:
        if buffer.last >= buffer.since:
            self._stays.append(Stay(number, buffer.start, buffer.since, buffer.last))
        self._gaps.give(buffer.start, buffer.rows)
        buffer.start = -1

    def _touch(self, buffer: _Buffer, *, reads: bool) -> None:
        """Notes that the last instruction so far touches a buffer; `reads` says that it reads the buffer from its home."""
        buffer.last = len(self._code) - 1
        if reads and buffer.reads is not None:
            buffer.reads.append(buffer.last)
        else:
            buffer.reads = None

    def _transfer(self, spec: Spec, number: int, first: int, end: int) -> None:
        """Adds the transfer of rows `first` to `end` of a resident buffer from or to its home, which is made where there is none."""
        buffer, virtual = self._buffers[number], self._tiles.buffers[number]
        if buffer.home < 0:
            self._host.append(HostBuffer(f"scratch:{virtual.name}", "scratch", self._host_end, virtual.rows))
            buffer.home, self._host_end = self._host_end, self._host_end + virtual.rows
        record, (source,), (target,) = _BLANK.copy(), self._machine.rows_in(spec.reads), self._machine.rows_in(spec.writes)
        here, there = (target.field, source.field) if spec is self._bring else (source.field, target.field)
        record["opcode"], record["outer"], record["inner"], record["layer"] = spec.opcode, 1, end - first, virtual.layer
        record[there], record[here], record[f"{here}_buffer"] = buffer.home + first, buffer.start + first, number
        self._added.append(record.tobytes())
        self._emit(len(self._tiles.instructions) + len(self._added) - 1, 0, 0, 0)
        self._touch(buffer, reads=spec is self._bring)

    def _emit(self, instruction: int, *bases: int) -> None:
        self._code.append(instruction)
        self._bases.append(bases)


def _runs(mask: Bools) -> list[tuple[int, int]]:
    """The stretches of consecutive true entries, as [start, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    ends: list[list[int]] = edges.reshape(-1, 2).tolist()
    return [(first, end) for first, end in ends]
