"""Which instruction of a machine program is which of the tile program that it was scheduled from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.machine import Machine
from tpucc.numerics import Int64


def _scheduled(machine: Machine) -> list[int]:
    """The opcodes that scheduling adds, and those of transfers, several of which it may join to one."""
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
