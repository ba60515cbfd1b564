"""A tile program with unified-buffer addresses: allocation when everything fits, spilling when it doesn't; and the transfers' part in it.

Where rows are used again as soon as the program's order allows, an activation waits until the last block has gone to the host, and a
read waits until the unit is done with what lay there. So rows that the host link is still reading or writing are not given to others, as
long as there are enough. A rough clock tells how far the link lags behind the matrix unit, or must run ahead of it; for that long a buffer
keeps its rows before its first and after its last use. Small transfers that continue each other, in host memory and in the unified buffer,
become one, for each costs the link its latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.instructions import Opcode, Records
from tpucc.isa.program import HostBuffer, stretch_ends
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Lives, TooLarge, allocate
from tpucc.schedule.spill import Stay, spill
from tpucc.sim.timing import durations
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
    extents = [(stay.first, stay.last, tiles.buffers[stay.buffer].rows) for stay in result.stays]
    (first, last, rows), room = np.array(extents, np.int64).reshape(-1, 3).T, tiles.target.unified_buffer_rows
    note = (
        f"{result.spilled_rows:,} rows were spilled to host memory and {result.reloaded_rows:,} read again: "
        f"what lives at one time needs {needed:,} rows, and the unified buffer has {room:,}"
    )
    return Placement(result.instructions, result.stays, largest_live_sum(first, last, rows), result.host, (note,))


def join_transfers(placement: Placement, target: Target) -> Placement:
    """The instructions with every run of such transfers, which stand side by side, in one; stays count in the new instructions.

    One whose bytes take as long as its latency continues none: what it brings may be needed later, and has a transfer of its own.
    """
    code = placement.instructions
    continues = _continues(code, placement.host) & (code["inner"] < target.half_rate_rows)
    index = np.cumsum(~continues) - 1
    kept = code[~continues].copy()
    moved = _transfers(code)
    kept["inner"][index[moved]] = 0
    np.add.at(kept["inner"], index[moved], code["inner"][moved])
    new = index.tolist()
    stays = tuple(replace(stay, first=new[stay.first], last=new[stay.last]) for stay in placement.stays)
    return replace(placement, instructions=kept, stays=stays)


def _transfers(code: Records) -> Bools:
    return np.isin(code["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY))


def _continues(code: Records, buffers: Sequence[HostBuffer]) -> Bools:
    """Whether an instruction moves the rows that follow those of the instruction before it, the same way, and of host memory of the same
    kind."""
    host, rows = code["host"].astype(np.int64), code["inner"].astype(np.int64)
    buffer = code["ub"].astype(np.int64) + code["dest"]
    found = np.zeros(len(code), np.bool_)
    found[1:] = _transfers(code)[1:] & (code["opcode"][1:] == code["opcode"][:-1]) & (code["layer"][1:] == code["layer"][:-1])
    found[1:] &= (np.diff(host) == rows[:-1]) & (np.diff(buffer) == rows[:-1])
    return found & (host < np.concatenate([np.zeros(1, np.int64), stretch_ends(buffers, host)])[:-1])
