"""Allocation of buffers: each gets one place for all of its life where all fit, and several where buffers must be spilled."""

from __future__ import annotations

import numpy as np

from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Lives, TooLarge, allocate
from tpucc.schedule.allocation import Allocation, Stay
from tpucc.schedule.spill import spill
from tpucc.schedule.transfer_times import with_transfers


def allocate_buffers(tiles: TileProgram, allocate: Allocate = allocate) -> Allocation:
    """Addresses for all buffers. Raises `LimitError` E0621 when not even the operands of each instruction fit.

    First with lives that include the time of transfers, then with the true lives, then by spilling: the first that fits.
    """
    first, last = live_ranges(tiles.instructions, len(tiles.buffers))
    lives = Lives(first, last, buffer_rows(tiles.buffers))
    lower_bound = largest_live_sum(first, last, lives.rows)
    for wanted in (with_transfers(tiles, lives), lives):
        try:
            return _resident(tiles, lives, allocate(wanted, tiles.machine.values.size(tiles.target)), lower_bound)
        except TooLarge:
            continue
    return spill(tiles, lower_bound)


def _resident(tiles: TileProgram, lives: Lives, starts: Int64, lower_bound: int) -> Allocation:
    """Every buffer stays in one place, from its row in `starts` on, from its first to its last use."""
    instructions = tiles.instructions.copy()
    for field in BUFFER_FIELDS:
        buffer = instructions[field]
        rows = field.removesuffix("_buffer")
        instructions[rows] += np.where(buffer >= 0, starts[buffer] if len(starts) else 0, 0).astype(np.uint32)
    used = np.flatnonzero(lives.last >= 0).tolist()
    stays = tuple(Stay(buffer, int(starts[buffer]), int(lives.first[buffer]), int(lives.last[buffer])) for buffer in used)
    return Allocation(instructions, stays, lower_bound, tiles.host)
