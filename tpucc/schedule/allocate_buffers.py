"""Allocation of buffers: each gets one place for all of its life where all fit, and several where buffers must be spilled."""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Allocation, Lives, Stay, TooLarge, allocate
from tpucc.schedule.spill import spill
from tpucc.sim.timing import record_cycles
from tpucc.target import Target


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


# The lives of buffers with the estimated time of their transfers.


def with_transfers(tiles: TileProgram, lives: Lives) -> Lives:
    """The lives, longer by the estimated time of the transfers from and to the host."""
    touched, code = effects(tiles.instructions, tiles.machine), tiles.instructions
    taken = record_cycles(tiles, touched)
    now = _clock(touched, taken, tiles.target)
    transfers = np.flatnonzero(touched.host_reads | touched.host_writes)
    cycles = taken[transfers].tolist()
    reads = touched.host_reads[transfers]
    first, last = lives.first.copy(), lives.last.copy()
    begin = _begins(now, _latest_starts(now[transfers].tolist(), cycles, reads.tolist()), transfers)
    end = np.searchsorted(now, _earliest_ends(now[transfers].tolist(), cycles), side="right")
    np.minimum.at(first, code["dest_buffer"][transfers[reads]], begin[reads])
    np.maximum.at(last, code["ub_buffer"][transfers[~reads]], np.minimum(end[~reads], len(code) - 1))
    return Lives(first, last, lives.rows)


def _clock(touched: Effects, taken: Int64, target: Target) -> Int64:
    """The cycle from which each instruction may start, if only products, the fetches of their tiles, `vector` and `pool` took time: cycles
    [instructions].

    A product starts when the products before it are done and its tile has arrived: at the latest arrival of an earlier tile, plus the
    products after that arrival. `activate` runs beside the products, and so takes no time here.
    """
    busy = np.where(touched.source.used & ~touched.host_writes, taken, 0)
    before: Int64 = np.cumsum(busy) - busy
    arrived = np.cumsum(touched.pops, dtype=np.int64) * target.tile_fetch_cycles
    return before + np.maximum.accumulate(np.where(touched.pops, np.maximum(arrived - before, 0), 0))


def _latest_starts(due: list[int], cycles: list[int], reads: list[bool]) -> Int64:
    """The cycle in which each transfer must start so that every read, in the link's order, ends by the cycle in which it is due."""
    starts = [0] * len(due)
    following = 2**60
    for position in range(len(due) - 1, -1, -1):
        following = (min(following, due[position]) if reads[position] else following) - cycles[position]
        starts[position] = following
    return np.array(starts, np.int64)


def _begins(now: Int64, starts: Int64, transfers: Int64) -> Int64:
    """The instruction from which on the rows of each transfer must be free: the one that runs when the transfer starts.

    Neighbouring transfers begin with the earliest of them, so that `join_transfers` can make one transfer of them.
    """
    running = np.maximum(np.searchsorted(now, starts, side="right") - 1, 0)
    leader = np.maximum.accumulate(np.where(np.diff(transfers, prepend=-2) == 1, 0, np.arange(len(transfers))))
    return np.minimum(running, running[leader])


def _earliest_ends(ready: list[int], cycles: list[int]) -> Int64:
    """The cycle in which each transfer ends, if the transfers run one after the other and none starts before it is ready."""
    ends = [0] * len(ready)
    free = 0
    for position, time in enumerate(ready):
        free = ends[position] = max(free, time) + cycles[position]
    return np.array(ends, np.int64)
