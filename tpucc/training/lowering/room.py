"""Rows of vector memory for buffers, in one scan over the instructions.

A buffer is there from its first use to its last one. One with a home in HBM is loaded at its first use. Where rows are missing, the buffer
whose next use is furthest away leaves (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966), whole: it is
stored in HBM first, unless HBM has the same values, and loaded again when it is needed. A buffer that isn't complete stays.

What one instruction needs may be too much, too. Then it is done in parts: of a buffer that isn't there, the rows of a part are loaded, or
stored as soon as they are computed.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tpucc.diagnostics import Diagnostic, LimitError, Origin
from tpucc.isa.program import HostBuffer
from tpucc.machine.instruction import RECORD, Records
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag
from tpucc.schedule.allocate import Gaps, Stay
from tpucc.schedule.listing import blank
from tpucc.target import Target
from tpucc.training.lowering.code import ROW_FIELDS, Buffer, Code, Instruction

PARTS = 16
"""A part of an instruction has at most this share of vector memory's rows."""


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """Instructions with rows of vector memory: their records and layers, the stays of buffers, and all buffers of HBM. `spilled` counts the
    rows that were stored because others needed room."""

    records: Records
    layers: tuple[int, ...]
    stays: tuple[Stay, ...]
    hbm: tuple[HostBuffer, ...]
    spilled: int


def place(code: Code, hbm: Sequence[HostBuffer], target: Target, origins: Sequence[Origin]) -> Placed:
    """Places the buffers of some code, to which it adds buffers of parts. `origins` are those of the layers.

    Raises `LimitError` E0950, at the layer's place, where what one instruction needs doesn't fit.
    """
    room = _Room(code, hbm, V2.values.size(target))
    for index, instruction in enumerate(tuple(code.instructions)):
        try:
            room.step(index, instruction)
        except LimitError as error:
            raise error.at(origins[instruction.layer].trail()) from None
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
    in_parts: bool = False
    """Some of its rows are computed, and lie in HBM alone."""


class _Room:
    """The state of the scan."""

    def __init__(self, code: Code, hbm: Sequence[HostBuffer], rows: int) -> None:
        complete = dict(code.last_writes())
        self._buffers = [_Buffer(of, of.home, [], complete.get(number, -1)) for number, of in enumerate(code.buffers)]
        for index in reversed(range(len(code.instructions))):
            for number in code.instructions[index].buffers:
                self._buffers[number].uses.append(index)
        self._code, self._rows, self._gaps, self._hbm = code, rows, Gaps(rows), list(hbm)
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
        if self._make_resident(needed, index, instruction.layer):
            self._put(instruction, {number: self._buffers[number].start for number in needed})
        else:
            whole = (instruction.places[instruction.y].buffer,) if instruction.needs_result else ()
            if self._has_passes(index, instruction) or not self._make_resident(whole, index, instruction.layer):
                self._refuse(needed)
            for part in instruction.parts(self._rows // PARTS, self._code.after_rows):
                self._put_part(part, index)
        for number in needed:
            buffer = self._buffers[number]
            buffer.in_parts &= buffer.complete > index
            buffer.uses.pop()
            if buffer.start < 0:
                continue
            if buffer.uses:
                heapq.heappush(self._far, (-buffer.uses[-1], number))
            else:
                self._leave(number)

    def _has_passes(self, index: int, instruction: Instruction) -> bool:
        """Whether it is one of several passes: they follow each other, over rows that lie one behind the other."""
        if instruction.opcode is not Opcode.MATRIX_MULTIPLY:
            return False
        return Flag.ACCUMULATE in instruction.flags or self._buffers[instruction.places[instruction.y].buffer].complete > index

    def _put(self, instruction: Instruction, starts: Mapping[int, int]) -> None:
        """Adds an instruction whose buffers begin at these rows."""
        rows = {name: starts[place.buffer] + place.row for name, place in instruction.places.items()}
        self._add(instruction.opcode, instruction.flags, instruction.fields | rows, instruction.layer, instruction.buffers)
        if (written := instruction.places.get(instruction.y)) is not None and self._buffers[written.buffer].start >= 0:
            self._buffers[written.buffer].home = -1

    def _put_part(self, part: Instruction, index: int) -> None:
        """Adds a part of an instruction. Where the rows that it needs don't fit beside what is resident, a buffer of it leaves."""
        while (taken := self._taken(part, index)) is None:
            leaving = [number for number in part.buffers if self._buffers[number].start >= 0 and self._buffers[number].complete < index]
            if not leaving:
                self._refuse(part.buffers)
            self._evict(leaving[0], part.layer)
        written = part.places[part.y].buffer if part.y else -1
        starts = {number: self._buffers[number].start for number in part.buffers}
        for number, (own, first) in taken.items():
            starts[number] = self._buffers[own].start - first
            if number != written:
                self._transfer(Opcode.LOAD, self._buffers[number].home + first, own, part.layer)
        self._put(part, starts)
        for number, (own, first) in taken.items():
            self._buffers[own].last = len(self._records) - 1
            if number == written:
                self._transfer(Opcode.STORE, self._home(number) + first, own, part.layer)
                self._buffers[number].in_parts = True
            self._leave(own)

    def _taken(self, part: Instruction, index: int) -> dict[int, tuple[int, int]] | None:
        """Rows for those buffers of a part that aren't resident: for each the number of a new buffer, and which of its rows is the first
        there. None where they don't fit."""
        found: dict[int, tuple[int, int, int]] = {}
        for number in part.buffers:
            if self._buffers[number].start >= 0:
                continue
            places = [(name, place.row) for name, place in part.places.items() if place.buffer == number]
            first, end = min(row for _, row in places), max(row + part.span(name) for name, row in places)
            if (start := self._space(end - first, part.buffers, index, part.layer)) < 0:
                for taken, _, rows in found.values():
                    self._gaps.give(taken, rows)
                return None
            found[number] = start, first, end - first
        return {number: (self._add_part(number, *rows, part.layer), rows[1]) for number, rows in found.items()}

    def _add_part(self, number: int, start: int, first: int, rows: int, layer: int) -> int:
        """The number of a new buffer of some rows of another one, which is resident."""
        of = Buffer(f"{self._buffers[number].of.name}+{first}", rows, layer)
        self._code.buffers.append(of)
        self._buffers.append(_Buffer(of, -1, [], -1, start, len(self._records)))
        return len(self._buffers) - 1

    def placed(self) -> Placed:
        records = self._records
        joined = blank(len(records), 0)
        for position, record in enumerate(records):
            joined[position] = record[0]
        return Placed(joined, tuple(self._layers), tuple(self._stays), tuple(self._hbm), self._spilled)

    def _make_resident(self, needed: Sequence[int], index: int, layer: int) -> bool:
        """Makes all buffers that an instruction needs resident, if they fit. Where they find no place among others, all that may leave does
        so first."""
        if any(self._buffers[number].in_parts for number in needed):
            return False
        if sum(self._buffers[number].of.rows for number in needed) > self._rows:
            return False
        if all(self._found(number, needed, index, layer) for number in needed):
            return True
        for number, buffer in enumerate(self._buffers):
            if buffer.start >= 0 and buffer.complete < index:
                self._evict(number, layer)
        return all(self._found(number, needed, index, layer) for number in needed)

    def _refuse(self, needed: Sequence[int]) -> NoReturn:
        names = ", ".join(f"{self._buffers[number].of.name} of {self._buffers[number].of.rows:,} rows" for number in needed)
        message = f"vector memory has {self._rows:,} rows, and these don't fit together: {names}"
        mend = "these can't be divided into parts; fewer items make the values of the batch smaller"
        raise LimitError(Diagnostic("E0950", message, help=(mend,)))

    def _found(self, number: int, needed: Sequence[int], index: int, layer: int) -> bool:
        """Finds rows for a buffer that isn't resident, and loads it if HBM has its values; False if there are none."""
        buffer = self._buffers[number]
        if buffer.start >= 0:
            return True
        if (start := self._space(buffer.of.rows, needed, index, layer)) < 0:
            return False
        buffer.start, buffer.since = start, len(self._records)
        heapq.heappush(self._far, (-buffer.uses[-1], number))
        if buffer.home >= 0:
            self._transfer(Opcode.LOAD, buffer.home, number, layer)
        return True

    def _space(self, rows: int, needed: Sequence[int], index: int, layer: int) -> int:
        """The first of so many free rows; buffers that aren't `needed` leave for them. -1 where that isn't enough."""
        while (start := self._gaps.take(rows)) < 0:
            if (furthest := self._furthest(needed, index)) < 0:
                return -1
            self._evict(furthest, layer)
        return start

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
            self._spilled += buffer.of.rows
            self._transfer(Opcode.STORE, self._home(number), number, layer)

    def _home(self, number: int) -> int:
        """The rows of HBM of a buffer, which may be new."""
        buffer = self._buffers[number]
        if buffer.home < 0:
            buffer.home = self._end
            self._hbm.append(HostBuffer(f"scratch:{buffer.of.name}:{number}", "scratch", self._end, buffer.of.rows))
            self._end += buffer.of.rows
        return buffer.home

    def _transfer(self, opcode: Opcode, hbm: int, number: int, layer: int) -> None:
        buffer = self._buffers[number]
        fields = {"host": hbm, "dest" if opcode is Opcode.LOAD else "ub": buffer.start, "inner": buffer.of.rows, "outer": 1}
        self._add(opcode, Flag(0), fields, layer, (number,))

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
