"""Machine instructions on their way to a program: what each belongs to, and room for more between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpucc.isa.effects import Instruction, Instructions
from tpucc.isa.listing.instructions import instruction_texts
from tpucc.machine.machine import Machine
from tpucc.machine.record import RECORD, Records
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False)
class Listing:
    """Instructions (`RECORD`) with their layers. `placed` is each one's index in the placed listing, -1 for what scheduling added since.
    `names` are the layers'.

    As a sequence it has each one as an `Instruction`.
    """

    records: Records
    layer: Int64
    placed: Int64
    names: tuple[str, ...] = ()
    machine: Machine = DEFAULT

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._instructions)

    def __getitem__(self, index: int) -> Instruction:
        return self._instructions[index]

    @cached_property
    def _instructions(self) -> Instructions:
        return Instructions(self.records, self.layer, self.names, lambda index: self._texts[index], self.machine)

    @cached_property
    def _texts(self) -> list[str]:
        return instruction_texts(self.machine, self.records)

    def inserted(self, before: Int64, records: Records, layer: Int64) -> Listing:
        """A listing with `records[i]` before instruction `before[i]` of this one; of several at one place, the first given is first."""
        order = np.argsort(np.concatenate([2 * np.arange(len(self)) + 1, 2 * before]), kind="stable")
        added = np.full(len(records), -1, np.int64)
        layers, placed = (np.concatenate(pair)[order] for pair in ((self.layer, layer), (self.placed, added)))
        return Listing(np.concatenate((self.records, records))[order], layers, placed, self.names, self.machine)


def blank(count: int, opcode: int) -> Records:
    """`count` records of one opcode, all other fields zero."""
    records = np.zeros(count, RECORD)
    records["opcode"] = opcode
    return records
