"""Room for transfers: rows that the host link is still reading or writing are not given to others, as long as there are enough.

Where rows are used again as soon as the program's order allows, an activation waits until the last block has gone to the host, and a
read waits until the unit is done with what lay there. A rough clock tells how far the link lags behind the matrix unit, or must run
ahead of it; for that long a buffer keeps its rows before its first and after its last use.
"""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives
from tpucc.sim.cycles import durations
from tpucc.target import Target


def with_transfers(tiles: TileProgram, lives: Lives) -> Lives:
    """The lives, longer by the time that transfers are estimated to take."""
    touched, code = effects(tiles.instructions), tiles.instructions
    taken = durations(code, touched, tiles.target)
    now = _clock(touched, taken, tiles.target)
    transfers = np.flatnonzero(touched.host_reads | touched.host_writes)
    cycles = taken[transfers].tolist()
    reads = touched.host_reads[transfers]
    first, last = lives.first.copy(), lives.last.copy()
    begin = np.searchsorted(now, _latest_starts(now[transfers].tolist(), cycles, reads.tolist()))
    end = np.searchsorted(now, _earliest_ends(now[transfers].tolist(), cycles), side="right")
    np.minimum.at(first, code["dest_buffer"][transfers[reads]], begin[reads])
    np.maximum.at(last, code["ub_buffer"][transfers[~reads]], np.minimum(end[~reads], len(code) - 1))
    return Lives(first, last, lives.rows)


def _clock(touched: Effects, taken: Int64, target: Target) -> Int64:
    """Cycles after which each instruction may start, if only products, their weights, and the activation unit's own work took time.

    A product starts when those before it are done and its tile is there: at the latest of all earlier tiles' arrivals, each with the
    products that follow it added. The activation unit's own work is what it reads from the unified buffer.
    """
    busy = np.where(touched.source.used & ~touched.host_writes, taken, 0)
    before: Int64 = np.cumsum(busy) - busy
    arrived = np.cumsum(touched.pops) * target.tile_fetch_cycles
    return before + np.maximum.accumulate(np.where(touched.pops, np.maximum(arrived - before, 0), 0))


def _latest_starts(due: list[int], cycles: list[int], reads: list[bool]) -> Int64:
    """When each transfer must start so that every read, in the link's order, is done by the time it is due."""
    starts = [0] * len(due)
    following = 2**60
    for position in range(len(due) - 1, -1, -1):
        following = (min(following, due[position]) if reads[position] else following) - cycles[position]
        starts[position] = following
    return np.array(starts, np.int64)


def _earliest_ends(ready: list[int], cycles: list[int]) -> Int64:
    """When each transfer is done, one after the other, none before it is ready."""
    ends = [0] * len(ready)
    free = 0
    for position, time in enumerate(ready):
        free = ends[position] = max(free, time) + cycles[position]
    return np.array(ends, np.int64)
