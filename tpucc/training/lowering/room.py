"""Rows of vector memory for buffers, in one scan over the instructions.

A buffer is there from its first use to its last one. One with a home in HBM is loaded at its first use. Where rows are missing, the buffer
whose next use is furthest away leaves (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966), whole: it is
stored in HBM first, unless HBM has the same values, and loaded again when it is needed. A buffer that isn't complete stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, LimitError
from tpucc.isa.program import HostBuffer
from tpucc.machine.instruction import RECORD, Records
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag
from tpucc.schedule.allocate import Gaps, Stay
from tpucc.schedule.listing import blank
from tpucc.target import Target
from tpucc.training.lowering.code import ROW_FIELDS, Buffer, Code, Instruction


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """Instructions with rows of vector memory: their records and layers, the stays of buffers, and all buffers of HBM. `spilled` counts the
    rows that were stored because others needed room."""

    records: Records
    layers: tuple[int, ...]
    stays: tuple[Stay, ...]
    hbm: tuple[HostBuffer, ...]
    spilled: int


def place(code: Code, hbm: Sequence[HostBuffer], target: Target) -> Placed:
    """Places the buffers of some code. Raises `LimitError` E0950 where what one instruction needs doesn't fit."""
    room = _Room(code, hbm, V2.values.size(target))
    for index, instruction in enumerate(code.instructions):
        room.step(index, instruction)
    return room.placed()


@dataclass(slots=True)
class _Buffer:
    """A buffer during the scan; resident where `start` isn't -1. `home` has the same values in HBM, -1 for nothing."""

    of: Buffer
    home: int
    uses: list[int]
    """The instructions that will touch it, the next one last."""
    complete: int
    """The last instruction that writes it, -1 for none."""
    start: int = -1
    since: int = 0
    last: int = -1


class _Room:
    """The state of the scan."""

    def __init__(self, code: Code, hbm: Sequence[HostBuffer], rows: int) -> None:
        complete = dict(code.last_writes())
        self._buffers = [_Buffer(of, of.home, [], complete.get(number, -1)) for number, of in enumerate(code.buffers)]
        for index in reversed(range(len(code.instructions))):
            for number in code.instructions[index].buffers:
                self._buffers[number].uses.append(index)
        self._rows, self._gaps, self._hbm = rows, Gaps(rows), list(hbm)
        self._end = max((buffer.end for buffer in hbm), default=0)
        self._records: list[Records] = []
        self._layers: list[int] = []
        self._stays: list[Stay] = []
        self._far: list[tuple[int, int]] = []
        """A heap of resident buffers by the distance of their next use; some entries are out of date."""
        self._spilled = 0

    def step(self, index: int, instruction: Instruction) -> None:
        """Adds an instruction, after the transfers that it needs."""
        needed = instruction.buffers
        self._make_resident(needed, index, instruction.layer)
        rows = {name: self._buffers[place.buffer].start + place.row for name, place in instruction.places.items()}
        self._add(instruction.opcode, instruction.flags, instruction.fields | rows, instruction.layer, needed)
        for number in needed:
            buffer = self._buffers[number]
            if (written := instruction.places.get(instruction.y)) is not None and written.buffer == number:
                buffer.home = -1
            buffer.uses.pop()
            if buffer.uses:
                heapq.heappush(self._far, (-buffer.uses[-1], number))
            else:
                self._leave(number)

    def placed(self) -> Placed:
        records = self._records
        joined = blank(len(records), 0)
        for position, record in enumerate(records):
            joined[position] = record[0]
        return Placed(joined, tuple(self._layers), tuple(self._stays), tuple(self._hbm), self._spilled)

    def _make_resident(self, needed: Sequence[int], index: int, layer: int) -> None:
        """Makes all buffers that an instruction needs resident. Where they find no place among others, all that may leave does so first.
        Raises `LimitError` E0950 where they don't fit even then."""
        if all(self._found(number, needed, index, layer) for number in needed):
            return
        for number, buffer in enumerate(self._buffers):
            if buffer.start >= 0 and buffer.complete < index:
                self._evict(number, layer)
        if not all(self._found(number, needed, index, layer) for number in needed):
            names = ", ".join(f"{self._buffers[number].of.name} of {self._buffers[number].of.rows:,} rows" for number in needed)
            message = f"vector memory has {self._rows:,} rows, and these don't fit together: {names}"
            mend = "a value stands there whole: fewer items make those of the batch smaller, narrower layers the weights"
            raise LimitError(Diagnostic("E0950", message, help=(mend,)))

    def _found(self, number: int, needed: Sequence[int], index: int, layer: int) -> bool:
        """Finds rows for a buffer that isn't resident, evicting buffers that aren't `needed`, and loads it if HBM has its values; False if
        there are none."""
        buffer = self._buffers[number]
        if buffer.start >= 0:
            return True
        while (start := self._gaps.take(buffer.of.rows)) < 0:
            if (furthest := self._furthest(needed, index)) < 0:
                return False
            self._evict(furthest, layer)
        buffer.start, buffer.since = start, len(self._records)
        heapq.heappush(self._far, (-buffer.uses[-1], number))
        if buffer.home >= 0:
            self._add(Opcode.LOAD, Flag(0), {"host": buffer.home, "dest": start, "inner": buffer.of.rows, "outer": 1}, layer, (number,))
        return True

    def _furthest(self, needed: Sequence[int], index: int) -> int:
        """The complete buffer whose next use is furthest away, of those that aren't needed now; -1 if there is none."""
        kept, found = list[tuple[int, int]](), -1
        while self._far and found < 0:
            distance, number = heapq.heappop(self._far)
            buffer = self._buffers[number]
            if buffer.start < 0 or -distance != buffer.uses[-1]:
                continue
            if number in needed or buffer.complete >= index:
                kept.append((distance, number))
            else:
                found = number
        for entry in kept:
            heapq.heappush(self._far, entry)
        return found

    def _evict(self, number: int, layer: int) -> None:
        self._save(number, layer)
        self._leave(number)

    def _save(self, number: int, layer: int) -> None:
        """Stores a buffer in rows of HBM of its own, unless HBM has its values."""
        buffer = self._buffers[number]
        if buffer.home < 0:
            buffer.home = self._end
            self._hbm.append(HostBuffer(f"scratch:{buffer.of.name}:{number}", "scratch", self._end, buffer.of.rows))
            self._end += buffer.of.rows
            self._spilled += buffer.of.rows
            fields = {"host": buffer.home, "ub": buffer.start, "inner": buffer.of.rows, "outer": 1}
            self._add(Opcode.STORE, Flag(0), fields, layer, (number,))

    def _leave(self, number: int) -> None:
        buffer = self._buffers[number]
        self._stays.append(Stay(number, buffer.start, buffer.since, buffer.last))
        self._gaps.give(buffer.start, buffer.of.rows)
        buffer.start = -1

    def _add(self, opcode: Opcode, flags: Flag, fields: Mapping[str, int], layer: int, touched: Sequence[int]) -> None:
        record = blank(1, opcode)
        record["flags"] = flags
        for name, value in fields.items():
            record[name] = value
        for number in touched:
            self._buffers[number].last = len(self._records)
        self._records.append(record)
        self._layers.append(layer)


if missing := {*ROW_FIELDS} - {*(RECORD.names or ())}:
    raise TypeError(f"no field of an instruction is named {', '.join(missing)}")
