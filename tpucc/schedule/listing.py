"""The instructions of a program while they are scheduled: each with its layer, and with a way to insert more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tpucc.isa.effects import Instruction, Instructions
from tpucc.isa.listing.instructions import instruction_texts
from tpucc.machine.instruction import RECORD, Records
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False)
class Listing:
    """Instructions (`RECORD`) with their layers. `placed` has the index of each instruction before any was inserted, -1 for an inserted
    one. `names` has the names of the layers.

    As a sequence it has each instruction as an `Instruction`.
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
        """The listing with `records[i]`, of layer `layer[i]`, before its instruction `before[i]`. Records at one place keep their order."""
        order = np.argsort(np.concatenate([2 * np.arange(len(self)) + 1, 2 * before]), kind="stable")
        added = np.full(len(records), -1, np.int64)
        layers, placed = (np.concatenate(pair)[order] for pair in ((self.layer, layer), (self.placed, added)))
        return Listing(np.concatenate((self.records, records))[order], layers, placed, self.names, self.machine)


def blank(count: int, opcode: int) -> Records:
    """`count` records of one opcode, all other fields zero."""
    records = np.zeros(count, RECORD)
    records["opcode"] = opcode
    return records
