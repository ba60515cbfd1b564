"""Labels: rows of host memory and of the unified buffer by the names of the buffers that lie there.

`host=x.0+8` is row 8 of the host buffer x.0. `ub=h.0+8` is row 8 of the stay of h.0 in the unified buffer. Where a name has several stays,
the label means the stay at the time of the instruction; for a source, a stay that began before it. A number is always allowed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from tpucc.diagnostics import counted, did_you_mean, printable
from tpucc.isa.listing.instructions import plain_texts
from tpucc.isa.listing.words import Word, label_in, label_text, number_in
from tpucc.isa.program import HostBuffer, Resident
from tpucc.machine.instruction import OperandSpec
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64

MAX_ROW = 2**22
"""Stays beyond this row are shown by number; the verifier refuses them."""


class Labels:
    """The names of rows in one program's listing."""

    def __init__(self, machine: Machine, host: Sequence[HostBuffer], residents: Sequence[Resident]) -> None:
        self._machine, self._written = machine, machine.written_fields
        self._contents = {memory.name: memory.contents for memory in machine.memories}
        self._host = {buffer.name: buffer for buffer in host}
        self._sorted = sorted(self._host.values(), key=lambda buffer: buffer.start)
        self._starts = np.array([buffer.start for buffer in self._sorted], np.int64)
        self._residents = residents
        self._stays: dict[str, list[int]] = {}
        """The stays of each name, by their beginnings."""
        for index in sorted(range(len(residents)), key=self._first):
            self._stays.setdefault(residents[index].name, []).append(index)

    def texts(self, operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
        """An operand's values, with labels for rows that have one; as `instruction_texts` wants it."""
        match self._contents.get(operand.space):
            case Contents.BUFFERS:
                return self._host_texts(values)
            case Contents.VALUES:
                return self._stay_texts(operand.field, indices, values)
            case Contents.SUMS | None:
                return plain_texts(self._machine, operand, indices, values)

    def resolve(self, operand: OperandSpec, word: Word, instruction: int) -> int:
        """The row that a number or a label stands for. Raises `LineError` E0713."""
        number, label = number_in(word.text), label_in(word)
        if number is not None:
            return number
        contents = self._contents.get(operand.space)
        if label is None or contents in (Contents.SUMS, None):
            word.fail("E0713", f"expected a number{' or a label' if label is None else ''} for {operand.key}, found {printable(word.text)}")
        name, offset = label
        place = (
            self._host_buffer(name, word)
            if contents is Contents.BUFFERS
            else self._stay(name, word, instruction, operand.field in self._written)
        )
        rows = place.rows
        if offset >= rows:
            word.fail("E0713", f"{printable(name)} has {counted(rows, 'row')}, so that +{offset} is past its end")
        return place.start + offset

    def _first(self, stay: int) -> int:
        return self._residents[stay].first

    def _find(self, name: str, instruction: int, written: bool) -> int:
        """The index of the stay of `name` that `instruction` writes (or reads): the latest begun by then (or before); -1 if none lasts.

        What is read began before, unless an edit has taken away what wrote it: then it begins here.
        """
        stays = self._stays.get(name, [])
        for time in (instruction,) if written else (instruction - 1, instruction):
            position = bisect_right(stays, time, key=self._first) - 1
            if position >= 0 and self._residents[stays[position]].last >= instruction:
                return stays[position]
        return -1

    def _host_buffer(self, name: str, word: Word) -> HostBuffer:
        if name not in self._host:
            word.fail("E0713", f"no host buffer is named {printable(name)}", self._near_host(name))
        return self._host[name]

    def _near_host(self, name: str) -> str:
        """Help for a name that no host buffer has. A tensor's columns lie in x.0, x.1, and so on: x.1 may be meant as row 1 of x.0."""
        stem, _, number = name.rpartition(".") if name.rpartition(".")[2].isdecimal() else (name, "", "")
        first = self._host.get(f"{stem}.0")
        if first is None:
            return did_you_mean(name, self._host)
        blocks = sum(other.rpartition(".")[0] == stem for other in self._host)
        columns = (
            f"{first.name} has all columns of {stem}"
            if blocks == 1
            else f"the columns of {stem} are at {first.name} to {stem}.{blocks - 1}"
        )
        row = int(number) if number and len(number) < 12 and int(number) < first.rows else 0
        rows = f"row {row} of {first.name}" if row else f"the last of its {counted(first.rows, 'row')}"
        return printable(f"{columns}; {rows} is {label_text(first.name, row or first.rows - 1)}")

    def _stay(self, name: str, word: Word, instruction: int, written: bool) -> Resident:
        memory = self._machine.holding(Contents.VALUES)
        assert memory is not None
        if name not in self._stays:
            word.fail("E0713", f"nothing in the {memory.title} is named {printable(name)}", did_you_mean(name, self._stays))
        index = self._find(name, instruction, written)
        if index < 0:
            word.fail("E0713", f"{printable(name)} isn't in the {memory.title} at instruction {instruction:,}")
        return self._residents[index]

    def _host_texts(self, values: Int64) -> list[str]:
        texts = []
        for position, value in zip((np.searchsorted(self._starts, values, side="right") - 1).tolist(), values.tolist(), strict=True):
            buffer = self._sorted[position] if position >= 0 else None
            inside = buffer is not None and value < buffer.end
            texts.append(label_text(buffer.name, value - buffer.start) if buffer and inside else str(value))
        return texts

    def _stay_texts(self, field: str, indices: Int64, values: Int64) -> list[str]:
        owners = self._owner(field, indices, values)
        texts = []
        for index, owner, value in zip(indices.tolist(), owners.tolist(), values.tolist(), strict=True):
            resident = self._residents[owner] if owner >= 0 else None
            if resident is None or self._find(resident.name, index, field in self._written) != owner:
                texts.append(str(value))
            else:
                texts.append(label_text(resident.name, value - resident.start))
        return texts

    def _owner(self, field: str, indices: Int64, values: Int64) -> Int64:
        """The stays that the rows belong to, -1 for none: the map of the buffer is played from the first instruction to the last."""
        owners = np.full(len(indices), -1, np.int64)
        held = np.full(max((r.end for r in self._residents if _shown(r)), default=0) + 1, -1, np.int64)
        rows = np.minimum(values, len(held) - 1)
        done = 0
        for time, begins, resident in self._changes(field in self._written):
            until = int(np.searchsorted(indices, time))
            owners[done:until] = held[rows[done:until]]
            done = until
            stay = self._residents[resident]
            part = held[stay.start : stay.end]
            if begins:
                part[:] = resident
            else:
                part[part == resident] = -1
        return owners

    def _changes(self, written: bool) -> list[tuple[int, bool, int]]:
        """(instruction from which it counts, begins, stay), ends before beginnings."""
        stays = [(index, stay) for index, stay in enumerate(self._residents) if _shown(stay)]
        begins = [(stay.first + (not written), True, index) for index, stay in stays]
        return sorted([*begins, *((stay.last + 1, False, index) for index, stay in stays)])


def _shown(resident: Resident) -> bool:
    return resident.start >= 0 and resident.rows > 0 and resident.end <= MAX_ROW
