"""The lives of buffers with the estimated time of their transfers.

If rows were used again as soon as the program's order allows, instructions would wait for the host link: an `activate` until the rows that
it writes have gone to the host, a read of the host until the unit has read the rows that it overwrites. So a rough clock estimates when
transfers end, and when they must begin. The lives of their buffers are longer by that time, and the allocation keeps their rows apart.
"""

from __future__ import annotations

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Lives
from tpucc.sim.timing import durations
from tpucc.target import Target


def with_transfers(tiles: TileProgram, lives: Lives) -> Lives:
    """The lives, longer by the estimated time of the transfers from and to the host."""
    touched, code = effects(tiles.instructions, tiles.machine), tiles.instructions
    taken = durations(tiles, touched)
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
