"""Rows of vector memory for buffers, in one scan over the instructions.

A buffer is there from its first use to its last one. One with a home in HBM is loaded at its first use. Where rows are missing, the buffer
whose next use is furthest away leaves (Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", 1966), whole: it is
stored in HBM first, unless HBM has the same values, and loaded again when it is needed. A buffer that isn't complete stays, if it can.
A table leaves where its rows are chosen by indices: it is read, and added to, in HBM.

What one instruction needs may be too much, too. Then it is done in chunks (`chunks.py`): of a buffer that isn't there, the rows of a chunk
are loaded, or stored when they are computed. Where an instruction can't be done so by itself, as one of several passes, the scan begins
anew, and runs of instructions are done in chunks together.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError, Origin
from tpucc.isa.effects import Bools
from tpucc.isa.program import HostBuffer
from tpucc.machine.instruction import RECORD, Records
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.machines.v2.places import Flag
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Gaps, Stay
from tpucc.schedule.listing import blank
from tpucc.target import Target
from tpucc.training.lowering.chunks import Chunk, Run, Runs
from tpucc.training.lowering.code import MULTIPLIES, PUSHES, ROW_FIELDS, Buffer, Code, Instruction, stretches

PARTS = 16
"""A chunk computes at most this share of vector memory's rows. What has fewer rows is resident while chunks need it."""
NEAR = 128
"""Stretches of a buffer with at most this share of vector memory's rows between them are loaded together."""
RESULT = 2
"""What chunks compute is resident if it has at most this share of vector memory's rows."""


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """Instructions with rows of vector memory: their records and layers, the stays of buffers, and all buffers of HBM. `spilled` counts the
    rows that were stored because others needed room, `in_chunks` those that were loaded and stored for chunks of runs."""

    records: Records
    layers: tuple[int, ...]
    stays: tuple[Stay, ...]
    hbm: tuple[HostBuffer, ...]
    spilled: int
    in_chunks: Counter[IntEnum]


def place(code: Code, hbm: Sequence[HostBuffer], target: Target, origins: Sequence[Origin]) -> Placed:
    """Places the buffers of some code, to which it adds buffers of parts. `origins` are those of the layers.

    Raises `LimitError` E0950, at the layer's place, where what one instruction needs doesn't fit.
    """
    buffers, expressions = tuple(code.buffers), dict(code.expressions)
    try:
        return _scanned(code, hbm, target, origins, by_runs=False)
    except LimitError:
        code.buffers[:], code.expressions = buffers, expressions
        return _scanned(code, hbm, target, origins, by_runs=True)


def _scanned(code: Code, hbm: Sequence[HostBuffer], target: Target, origins: Sequence[Origin], by_runs: bool) -> Placed:
    """Places the buffers, each instruction by itself, or runs of them where these need it."""
    room, index = _Room(code, hbm, V2.values.size(target), by_runs), 0
    while index < len(code.instructions):
        try:
            index = room.step(index)
        except LimitError as error:
            raise error.at(origins[code.instructions[index].layer].trail()) from None
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
    scratch: int = -1
    """Its own rows of HBM, if it has some."""
    written: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """The rows that have values while it is resident."""
    stored: Bools | None = None
    """The rows that are computed, and lie in HBM alone, where it isn't complete."""


@dataclass(slots=True)
class _Loaded:
    """A chunk with the rows that are there for it alone: by the numbers of buffers where their rows lie, and the buffers of these rows.
    `result` are the rows of the result that are to be stored."""

    offsets: dict[int, Int64]
    parts: dict[int, int]
    result: Bools


class _Room:
    """The state of the scan."""

    def __init__(self, code: Code, hbm: Sequence[HostBuffer], rows: int, by_runs: bool) -> None:
        complete = dict(code.last_writes())
        self._buffers = [_Buffer(of, of.home, [], complete.get(number, -1)) for number, of in enumerate(code.buffers)]
        for index in reversed(range(len(code.instructions))):
            for number in code.instructions[index].touched:
                self._buffers[number].uses.append(index)
        self._code, self._rows, self._gaps, self._hbm = code, rows, Gaps(rows), list(hbm)
        self._end = max((buffer.end for buffer in hbm), default=0)
        self._records: list[Records] = []
        self._layers: list[int] = []
        self._stays: list[Stay] = []
        self._far: list[tuple[int, int]] = []
        """A heap of resident buffers by the distance of their next use; some entries are out of date."""
        self._spilled = 0
        self._in_chunks = Counter[IntEnum]()
        self._resident: set[int] = set()
        self._runs, self._by_runs = Runs(code), by_runs

    def step(self, index: int, again: bool = False) -> int:
        """Adds an instruction, or the chunks of a run that begins with it, after the transfers that they need. Gives the index of the
        instruction after them. `again` says that what isn't complete has left already."""
        instruction = self._code.instructions[index]
        if instruction.table is not None and self._buffers[instruction.table.buffer].start >= 0:
            self._evict(instruction.table.buffer, instruction.layer)
        runs = self._runs.beginning(index) if self._by_runs else ()
        end = next((run.end for run in runs if self._is_wide(run) and self._put_run(run)), index + 1)
        if end == index + 1:
            if self._make_resident(instruction.buffers, index, instruction.layer):
                self._put(instruction, {})
            elif not self._put_alone(index, instruction):
                if again or not self._by_runs or not self._evict_incomplete(instruction, index):
                    raise self._refusal(instruction.buffers)
                return self.step(index, again=True)
        for at in range(index, end):
            for number in self._code.instructions[at].touched:
                self._buffers[number].uses.pop()
                self._used(number, at)
        return end

    def _used(self, number: int, index: int) -> None:
        """Notes that an instruction has used a buffer."""
        buffer = self._buffers[number]
        if buffer.complete <= index:
            buffer.stored = None
        if buffer.start >= 0 and buffer.uses:
            heapq.heappush(self._far, (-buffer.uses[-1], number))
        elif buffer.start >= 0:
            self._leave(number)

    def _put_alone(self, index: int, instruction: Instruction) -> bool:
        """Adds an instruction in chunks by itself, if that can be. One of several passes can't: they follow each other, over rows that lie
        one behind the other. Without runs, what it writes must be there whole if something of that stays as it is."""
        y = [instruction.places[instruction.y].buffer] if instruction.y else []
        if instruction.opcode in MULTIPLIES and (Flag.ACCUMULATE in instruction.flags or self._buffers[y[0]].complete > index):
            return False
        if instruction.leaves_rows and not self._by_runs and not self._make_resident(y, index, instruction.layer):
            return False
        return self._put_run(Run(index, index, index + 1))

    def _is_wide(self, run: Run) -> bool:
        """Whether an instruction of a run needs more than there is room for."""
        if not all(self._is_whole(number) for each in self._runs.of(run) for number in each.buffers):
            return True
        staying = {number for number in self._resident if self._buffers[number].complete >= run.first}
        together = (staying.union(each.buffers) for each in self._runs.of(run))
        return any(sum(self._buffers[number].of.rows for number in numbers) > self._rows for numbers in together)

    def _put_run(self, run: Run) -> bool:
        """Adds a run in chunks, if these find room. What is small is resident meanwhile. What a chunk needs is loaded before the results of
        the chunk before are stored, where both have room: so transfers and arithmetic share the time."""
        instructions, layer = self._runs.of(run), self._code.instructions[run.first].layer
        needed = tuple(dict.fromkeys(number for each in instructions for number in each.buffers))
        y = instructions[-1].places[instructions[-1].y].buffer if instructions[-1].y else -1
        for number in needed if self._by_runs else ():
            small = self._buffers[number].of.rows <= self._rows // (RESULT if number == y else PARTS)
            if small and (number == y or self._buffers[number].home >= 0) and self._is_whole(number):
                self._found(number, needed, run.first, layer)
        ahead = self._by_runs
        while (chunks := self._chunks(run, needed, y, ahead)) is None:
            leaving = [number for number in needed if self._buffers[number].start >= 0 and self._buffers[number].complete < run.first]
            if not ahead and not leaving:
                if y in self._resident and not self._buffers[y].written.any():
                    self._leave(y)
                return False
            if not ahead:
                self._evict(leaving[0], layer)
            ahead = False
        waiting: list[_Loaded] = []
        for chunk in chunks:
            if not ahead:
                self._store(waiting, y, layer)
            loaded = self._loaded(chunk, needed, y, run.first, layer, waiting)
            self._store(waiting, y, layer)
            for instruction in chunk.instructions:
                self._put(instruction, loaded.offsets)
            waiting.append(loaded)
        self._store(waiting, y, layer)
        return True

    def _chunks(self, run: Run, needed: Sequence[int], y: int, ahead: bool) -> list[Chunk] | None:
        """The chunks of a run that find room beside what stays, each of them or two at a time."""
        staying = [number for number in self._resident if number in needed or self._buffers[number].complete >= run.first]
        occupied = np.zeros(self._rows, np.bool_)
        for number in staying:
            occupied[self._buffers[number].start :][: self._buffers[number].of.rows] = True

        def fits(chunk: Chunk) -> bool:
            chunk.join(self._rows // NEAR if self._by_runs else self._rows)
            gaps = Gaps(0)
            for first, end in stretches(~occupied):
                gaps.give(first, end - first)
            rows = [int(np.count_nonzero(rows)) for number, rows in chunk.touched.items() if number not in staying]
            return all(gaps.take(count) >= 0 for count in rows * (1 + ahead))

        most = max(1, self._rows // PARTS)
        if self._by_runs:
            return self._runs.chunks(run, most, fits, y in self._resident)
        return chunks if all(map(fits, chunks := self._runs.parts(self._code.instructions[run.first], most))) else None

    def _loaded(self, chunk: Chunk, needed: Sequence[int], y: int, index: int, layer: int, waiting: list[_Loaded]) -> _Loaded:
        """Finds rows for what a chunk touches of buffers that aren't resident, and loads what it needs of these. Where there are none, what
        chunks that are waiting have is stored first."""
        found = _Loaded({}, {}, np.zeros(0, np.bool_))
        counts = {number: int(np.count_nonzero(rows)) for number, rows in chunk.touched.items() if number not in self._resident}
        while (places := self._places(counts, needed, index, layer)) is None:
            if not waiting:
                raise self._refusal(needed)
            self._store(waiting, y, layer)
        for number, start in places.items():
            rows = chunk.touched[number]
            found.offsets[number] = start - 1 + np.cumsum(rows)
            found.parts[number] = self._add_part(number, start, int(np.argmax(rows)), counts[number], index, layer)
        for number in found.parts:
            rows = self._to_load(chunk, number, number == y)
            self._transfer_stretches(Opcode.LOAD, number, rows, found, layer)
            if number == y:
                found.result = rows | chunk.written[y]
        return found

    def _store(self, waiting: list[_Loaded], y: int, layer: int) -> None:
        """Stores what chunks that are waiting for it have of the result, if that isn't resident. Their rows are free again."""
        while waiting:
            loaded = waiting.pop()
            for number, part in loaded.parts.items():
                self._buffers[part].last = len(self._records) - 1
                if number == y:
                    self._buffers[y].home, before = self._home(y), self._buffers[y].stored
                    self._transfer_stretches(Opcode.STORE, y, loaded.result, loaded, layer)
                    self._buffers[y].stored = loaded.result if before is None else loaded.result | before
                self._leave(part)

    def _transfer_stretches(self, opcode: Opcode, number: int, rows: Bools, loaded: _Loaded, layer: int) -> None:
        """Loads or stores some rows of a buffer, which a chunk has for itself."""
        self._in_chunks[opcode] += int(np.count_nonzero(rows))
        for first, end in stretches(rows):
            start = int(loaded.offsets[number][first])
            self._transfer(opcode, self._buffers[number].home + first, start, end - first, loaded.parts[number], layer)

    def _places(self, rows: Mapping[int, int], needed: Sequence[int], index: int, layer: int) -> dict[int, int] | None:
        """The first ones of so many free rows for each buffer, None if there aren't as many. Where they lie between others, all that may
        leave does so first."""
        for _ in range(2):
            found: dict[int, int] = {}
            for number, count in rows.items():
                if (start := self._space(count, needed, index, layer)) >= 0:
                    found[number] = start
            if len(found) == len(rows):
                return found
            for number, start in found.items():
                self._gaps.give(start, rows[number])
            for number in sorted(self._resident.difference(needed)):
                if self._buffers[number].complete < index:
                    self._evict(number, layer)
        return None

    def _to_load(self, chunk: Chunk, number: int, is_result: bool) -> Bools:
        """The rows of a buffer that HBM has and a chunk reads, or leaves between those that it writes."""
        buffer, touched = self._buffers[number], chunk.touched[number]
        found = np.zeros_like(touched)
        for first, end in stretches(touched) if buffer.home >= 0 else ():
            if chunk.read[number][first:end].any() or (is_result and not chunk.written[number][first:end].all()):
                found[first:end] = True if buffer.stored is None else buffer.stored[first:end]
        return found

    def _put(self, instruction: Instruction, offsets: Mapping[int, Int64]) -> None:
        """Adds an instruction. The rows of buffers that aren't resident lie at these rows."""
        rows = {}
        for name, place in instruction.places.items():
            own = offsets.get(place.buffer)
            rows[name] = self._buffers[place.buffer].start + place.row if own is None else int(own[place.row])
        if instruction.table is not None:
            rows["host"] = self._buffers[instruction.table.buffer].home + instruction.table.row
        self._add(instruction.opcode, instruction.flags, instruction.fields | rows, instruction.layer, instruction.buffers)
        if (written := instruction.places.get(instruction.y)) is not None and self._buffers[written.buffer].start >= 0:
            self._buffers[written.buffer].home = -1
            self._buffers[written.buffer].written[instruction.rows(instruction.y)] = True

    def _add_part(self, number: int, start: int, first: int, rows: int, index: int, layer: int) -> int:
        """The number of a new buffer of some rows of another one, which is resident and stays there for an instruction."""
        of = Buffer(f"{self._buffers[number].of.name}+{first}", rows, layer)
        self._code.buffers.append(of)
        self._buffers.append(_Buffer(of, -1, [], index, start, len(self._records)))
        self._resident.add(len(self._buffers) - 1)
        return len(self._buffers) - 1

    def placed(self) -> Placed:
        records = self._records
        joined = blank(len(records), 0)
        for position, record in enumerate(records):
            joined[position] = record[0]
        moved = self._in_chunks if self._by_runs else Counter[IntEnum]()
        return Placed(joined, tuple(self._layers), tuple(self._stays), tuple(self._hbm), self._spilled, moved)

    def _make_resident(self, needed: Sequence[int], index: int, layer: int) -> bool:
        """Makes all buffers that an instruction needs resident, if they fit. Where they find no place among others, all that may leave does
        so first."""
        if not all(map(self._is_whole, needed)):
            return False
        if sum(self._buffers[number].of.rows for number in needed) > self._rows:
            return False
        if all(self._found(number, needed, index, layer) for number in needed):
            return True
        for number, buffer in enumerate(self._buffers):
            if buffer.start >= 0 and buffer.complete < index:
                self._evict(number, layer)
        return all(self._found(number, needed, index, layer) for number in needed)

    def _is_whole(self, number: int) -> bool:
        """Whether all of a buffer's rows are at the same place, or none."""
        stored = self._buffers[number].stored
        return stored is None or bool(stored.all())

    def _refusal(self, needed: Sequence[int]) -> LimitError:
        names = ", ".join(f"{self._buffers[number].of.name} of {self._buffers[number].of.rows:,} rows" for number in needed)
        message = f"vector memory has {self._rows:,} rows, and these don't fit together: {names}"
        mend = "these can't be divided into parts; fewer items make the values of the batch smaller"
        return LimitError(Diagnostic("E0950", message, help=(mend,)))

    def _found(self, number: int, needed: Sequence[int], index: int, layer: int) -> bool:
        """Finds rows for a buffer that isn't resident, and loads it if HBM has its values; False if there are none."""
        buffer = self._buffers[number]
        if buffer.start >= 0:
            return True
        if (start := self._space(buffer.of.rows, needed, index, layer)) < 0:
            return False
        buffer.start, buffer.since, buffer.stored = start, len(self._records), None
        buffer.written = np.full(buffer.of.rows, buffer.home >= 0)
        self._resident.add(number)
        heapq.heappush(self._far, (-buffer.uses[-1], number))
        if buffer.home >= 0:
            self._transfer(Opcode.LOAD, buffer.home, buffer.start, buffer.of.rows, number, layer)
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

    def _evict_incomplete(self, instruction: Instruction, index: int) -> bool:
        """Stores what is there of buffers that aren't complete, the last ones to leave; sums don't leave between their passes. Gives
        whether there were any."""
        if instruction.opcode in (*PUSHES, *MULTIPLIES) and not self._runs.begins_group(index):
            return False
        layer, others = instruction.layer, self._resident.difference(instruction.buffers)
        leaving = [number for number in sorted(others) if self._buffers[number].complete >= index]
        for number in leaving:
            buffer = self._buffers[number]
            home, buffer.stored = self._home(number), buffer.written
            self._spilled += int(np.count_nonzero(buffer.stored))
            for first, end in stretches(buffer.stored):
                self._transfer(Opcode.STORE, home + first, buffer.start + first, end - first, number, layer)
            buffer.home = home
            self._leave(number)
        return bool(leaving)

    def _save(self, number: int, layer: int) -> None:
        """Stores a buffer in rows of HBM of its own, unless HBM has its values."""
        buffer = self._buffers[number]
        if buffer.home < 0:
            self._spilled += buffer.of.rows
            self._transfer(Opcode.STORE, self._home(number), buffer.start, buffer.of.rows, number, layer)

    def _home(self, number: int) -> int:
        """The rows of HBM of a buffer, which may be new."""
        buffer = self._buffers[number]
        if buffer.home < 0 and buffer.scratch < 0:
            buffer.scratch = self._end
            self._hbm.append(HostBuffer(f"scratch:{buffer.of.name}:{number}", "scratch", self._end, buffer.of.rows))
            self._end += buffer.of.rows
        buffer.home = buffer.home if buffer.home >= 0 else buffer.scratch
        return buffer.home

    def _transfer(self, opcode: Opcode, hbm: int, start: int, rows: int, number: int, layer: int) -> None:
        fields = {"host": hbm, "dest" if opcode is Opcode.LOAD else "ub": start, "inner": rows, "outer": 1}
        self._add(opcode, Flag(0), fields, layer, (number,))

    def _leave(self, number: int) -> None:
        buffer = self._buffers[number]
        if buffer.last >= buffer.since:  # something has touched it
            self._stays.append(Stay(number, buffer.start, buffer.since, buffer.last))
        self._gaps.give(buffer.start, buffer.of.rows)
        buffer.start = -1
        self._resident.discard(number)

    def _add(self, opcode: IntEnum, flags: Flag, fields: Mapping[str, int], layer: int, touched: Sequence[int]) -> None:
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
