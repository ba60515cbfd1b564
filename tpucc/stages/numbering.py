"""Which instruction of a machine program is which of the tile program that it was scheduled from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tpucc.diagnostics import listed
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.isa.verify import Violation
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.machine import Machine
from tpucc.numerics import Int64


def _scheduled(machine: Machine) -> list[int]:
    """The opcodes that scheduling adds, and the opcodes of transfers, several of which it may join to one."""
    asking = machine.touching(writing=machine.queue.place) if machine.queue is not None else ()
    return [machine.halt, *(spec.opcode for spec in (*machine.transfers, *asking, machine.waiting))]


def tile_numbers(tiles: TileProgram, program: Program) -> Int64:
    """For each instruction of the machine program of `tiles` its number there, -1 for what scheduling added, and for transfers.

    Scheduling keeps the order of all others; the interrupt that ends the program comes after them.
    """
    added = _scheduled(program.machine)
    mine, theirs = (np.flatnonzero(~np.isin(code["opcode"], added)) for code in (program.instructions, tiles.instructions))
    numbers = np.full(len(program.instructions), -1, np.int64)
    numbers[mine[: len(theirs)]] = theirs
    return numbers


def scheduled_places(places: ListingSpans, tiles: TileProgram, program: Program) -> ListingSpans:
    """Where the instructions of the machine program of `tiles` stand in the text of these."""
    spans = (places.spans[number] if number >= 0 else None for number in tile_numbers(tiles, program).tolist())
    return replace(places, spans=tuple(spans))


# Numbers of instructions in another list than the program, for messages to whoever wrote that list.


@dataclass(frozen=True, eq=False)
class Numbering:
    """The number that each instruction has in another listing, `listing` in words; -1 for one that isn't there."""

    listing: str
    numbers: Int64

    def said(self, found: Violation) -> Violation:
        """A violation whose message has the numbers of its instructions there, too."""
        there = [int(self.numbers[index]) for index in (found.instruction, found.other) if index >= 0]
        shown = [f"{number:,}" for number in there if number >= 0]
        if not shown or len(shown) < len(there):
            return found
        which = f"it is instruction {shown[0]}" if len(shown) == 1 else f"these are the instructions {listed(shown)}"
        return replace(found, message=f"{found.message}; in {self.listing}, {which}")
