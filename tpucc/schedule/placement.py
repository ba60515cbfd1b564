"""A tile program with addresses: of the unified buffer by allocation when everything fits, by spilling when it doesn't; of accumulators.

If rows were used again as soon as the program's order allows, instructions would wait for the host link: an `activate` until the rows that
it writes have gone to the host, a read of the host until the unit is done with what lies in its rows. So a rough clock estimates when
transfers end, and when they must begin. The lives of their buffers are longer by that, and the allocation keeps their rows apart. If there
is no room for that, the lives are the true ones; if there is none for these either, buffers are spilled. Small transfers that continue each
other, in host memory and in the unified buffer, become one, for each costs the link its latency.

Accumulator groups go round the accumulators like round a ring, each for itself: the rows just used are used again as late as possible, so
that activate empties some while the matrix unit fills others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError
from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.program import HostBuffer, stretch_ends
from tpucc.lowering.liveness import BUFFER_FIELDS, buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.machine import Machine
from tpucc.machine.memory import Contents
from tpucc.machine.record import Records
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Full, Lives, TooLarge, allocate, linear_scan
from tpucc.schedule.spill import Stay, spill
from tpucc.sim.timing import durations
from tpucc.target import Target


def with_transfers(tiles: TileProgram, lives: Lives) -> Lives:
    """The lives, longer by the time that transfers are estimated to take."""
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
    """Cycles after which each instruction may start, if only products, their weights, and the activation unit's own work took time.

    A product starts when those before it are done and its tile is there: at the latest of all earlier tiles' arrivals, each with the
    products that follow it added. Of the activation unit only what it reads from the unified buffer counts (`vector`, `pool`): `activate`
    runs     beside the products.
    """
    busy = np.where(touched.source.used & ~touched.host_writes, taken, 0)
    before: Int64 = np.cumsum(busy) - busy
    arrived = np.cumsum(touched.pops, dtype=np.int64) * target.tile_fetch_cycles
    return before + np.maximum.accumulate(np.where(touched.pops, np.maximum(arrived - before, 0), 0))


def _latest_starts(due: list[int], cycles: list[int], reads: list[bool]) -> Int64:
    """When each transfer must start so that every read, in the link's order, is done by the time it is due."""
    starts = [0] * len(due)
    following = 2**60
    for position in range(len(due) - 1, -1, -1):
        following = (min(following, due[position]) if reads[position] else following) - cycles[position]
        starts[position] = following
    return np.array(starts, np.int64)


def _begins(now: Int64, starts: Int64, transfers: Int64) -> Int64:
    """From which instruction on the rows of each transfer must be free: from the one that runs when it starts.

    Transfers that stand side by side begin with the earliest of them, so that `join_transfers` can make one of them.
    """
    running = np.maximum(np.searchsorted(now, starts, side="right") - 1, 0)
    leader = np.maximum.accumulate(np.where(np.diff(transfers, prepend=-2) == 1, 0, np.arange(len(transfers))))
    return np.minimum(running, running[leader])


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
            return _resident(tiles, lives, allocate(wanted, tiles.machine.values.size(tiles.target)), lower_bound)
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
    (first, last, rows), memory = np.array(extents, np.int64).reshape(-1, 3).T, tiles.machine.values
    room, home = memory.size(tiles.target), tiles.machine.by_memory[memory.spills_to]
    moved = f"{result.spilled_rows:,} rows were spilled to {home.title} and {result.reloaded_rows:,} read again"
    note = f"{moved}: what lives at one time needs {needed:,} rows, and the {memory.title} has {room:,}"
    if needed <= room:
        note = (
            f"the allocator found no place for all buffers in the {room:,} rows of the {memory.title}, although at most {needed:,} "
            f"are alive at one time; the built-in spilling placed them: {moved}"
        )
    return Placement(result.instructions, result.stays, largest_live_sum(first, last, rows), result.host, (note,))


def join_transfers(placement: Placement, target: Target, machine: Machine = DEFAULT) -> Placement:
    """The instructions with every run of such transfers, which stand side by side, in one; stays count in the new instructions.

    One whose bytes take as long as its latency isn't joined to the one before it: what it brings may be needed later.
    """
    code = placement.instructions
    moved = np.isin(code["opcode"], [spec.opcode for spec in machine.transfers])
    continues = _continues(code, moved, placement.host) & (code["inner"] < target.half_rate_rows)
    index = np.cumsum(~continues) - 1
    kept = code[~continues].copy()
    kept["inner"][index[moved]] = 0
    np.add.at(kept["inner"], index[moved], code["inner"][moved])
    new = index.tolist()
    stays = tuple(replace(stay, first=new[stay.first], last=new[stay.last]) for stay in placement.stays)
    return replace(placement, instructions=kept, stays=stays)


def _continues(code: Records, moved: Bools, buffers: Sequence[HostBuffer]) -> Bools:
    """Whether an instruction moves the rows that follow those of the instruction before it, the same way, and of host memory of the same
    kind; `moved` says which move rows."""
    host, rows = code["host"].astype(np.int64), code["inner"].astype(np.int64)
    buffer = code["ub"].astype(np.int64) + code["dest"]
    found = np.zeros(len(code), np.bool_)
    found[1:] = moved[1:] & (code["opcode"][1:] == code["opcode"][:-1]) & (code["layer"][1:] == code["layer"][:-1])
    found[1:] &= (np.diff(host) == rows[:-1]) & (np.diff(buffer) == rows[:-1])
    return found & (host < np.concatenate([np.zeros(1, np.int64), stretch_ends(buffers, host)])[:-1])


def place_groups(tiles: TileProgram) -> Int64:
    """The first accumulator row of each group; 0 for one that no instruction uses.

    Groups whose lives overlap are placed side by side, in the order of their first use. Raises `LimitError` E0623 when that takes more
    rows than there are and no other place is free.
    """
    first, last = live_ranges(tiles.instructions, len(tiles.groups), ("group",))
    starts = np.zeros(len(tiles.groups), np.int64)
    memory, place = tiles.machine.holding(Contents.SUMS), 0
    room = memory.size(tiles.target) if memory is not None else 0
    for cohort in _cohorts(first, last):
        sizes = [tiles.groups[group] for group in cohort]
        total = sum(sizes)
        if total > room:
            starts[cohort] = _squeezed(Lives(first[cohort], last[cohort], np.array(sizes)), room)
            continue
        starts[cohort] = found = _ring(sizes, place, room)
        place = found[-1] + sizes[-1]
    return starts


def _ring(sizes: Sequence[int], place: int, room: int) -> list[int]:
    """Places one after the other from `place` on and, past the end, from row 0; all from row 0 where the ring would close on itself."""
    starts, at = list[int](), place
    for size in sizes:
        at = at if at + size <= room else 0
        starts.append(at)
        at += size
    closed = min(starts) < starts[0] < at
    return [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)] if closed else starts


def _cohorts(first: Int64, last: Int64) -> Iterator[list[int]]:
    """The groups in the order of their first use, those together that are connected by overlapping lives."""
    cohort: list[int] = []
    end = -1
    order = [group for group in np.argsort(first, kind="stable").tolist() if last[group] >= 0]
    for group, begin, finish in zip(order, first[order].tolist(), last[order].tolist(), strict=True):
        if begin > end and cohort:
            yield cohort
            cohort = []
        cohort.append(group)
        end = max(end, finish)
    if cohort:
        yield cohort


def _squeezed(lives: Lives, room: int) -> Int64:
    """Places for groups that don't fit side by side: each takes rows that are free at its first use."""
    try:
        return linear_scan(lives, room)
    except Full as error:
        message = f"a product needs {error.rows:,} accumulator rows while {error.used:,} of {room:,} are in use"
        raise LimitError(Diagnostic("E0623", message, help=("cut the rows into smaller chunks, or activate sums earlier",))) from None
