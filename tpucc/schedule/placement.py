"""A tile program with unified-buffer addresses: allocation when everything fits, spilling when it doesn't."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.instructions import Records
from tpucc.isa.program import HostBuffer
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Lives, TooLarge, allocate
from tpucc.schedule.overlap import with_transfers
from tpucc.schedule.spill import Stay, spill


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Tile instructions (`TILE_RECORD`) whose unified-buffer rows are the machine's.

    Spilling may have added transfers and host buffers of kind "scratch". `lower_bound` is the largest sum of rows alive at one time.
    """

    instructions: Records
    stays: tuple[Stay, ...]
    lower_bound: int
    host: tuple[HostBuffer, ...]
    notes: tuple[str, ...]


def place_buffers(tiles: TileProgram, allocate: Allocate = allocate) -> Placement:
    """Addresses for all buffers. Raises `LimitError` E0621 when not even the operands of each instruction fit."""
    first, last = live_ranges(tiles.instructions, len(tiles.buffers))
    lives = Lives(first, last, buffer_rows(tiles.buffers))
    lower_bound = largest_live_sum(first, last, lives.rows)
    for wanted in (with_transfers(tiles, lives), lives):
        try:
            return _resident(tiles, lives, allocate(wanted, tiles.target.unified_buffer_rows), lower_bound)
        except TooLarge:
            continue
    return _spilled(tiles, lower_bound)


def _resident(tiles: TileProgram, lives: Lives, starts: Int64, lower_bound: int) -> Placement:
    """Every buffer stays in one place from its first to its last use."""
    instructions = tiles.instructions.copy()
    for field in BUFFER_FIELDS:
        buffer = instructions[field]
        rows = field.removesuffix("_buffer")
        instructions[rows] += np.where(buffer >= 0, starts[buffer] if len(starts) else 0, 0).astype(np.uint32)
    used = np.flatnonzero(lives.last >= 0).tolist()
    stays = tuple(Stay(buffer, int(starts[buffer]), int(lives.first[buffer]), int(lives.last[buffer])) for buffer in used)
    return Placement(instructions, stays, lower_bound, tiles.host, ())


def _spilled(tiles: TileProgram, needed: int) -> Placement:
    result = spill(tiles)
    first, last, rows = (np.array(column, np.int64) for column in zip(*result.extents(tiles), strict=True))
    room = tiles.target.unified_buffer_rows
    why = f"what lives at one time needs {needed:,} rows, and the unified buffer has {room:,}"
    if needed <= room:
        why = f"the allocator found no place for all buffers in the {room:,} rows of the unified buffer; {needed:,} live at one time"
    note = f"{result.spilled_rows:,} rows were spilled to host memory and {result.reloaded_rows:,} read again: {why}"
    return Placement(result.instructions, result.stays, largest_live_sum(first, last, rows), result.host, (note,))
