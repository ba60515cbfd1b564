"""The fastest of several programs with the same results: each candidate that can still win is scheduled and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.isa.record import UNITS
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import schedule
from tpucc.sim.stream import Stream, stream
from tpucc.sim.timing import durations, time_program

LARGEST = 100_000
"""Instructions of the largest program for which others are tried."""
WORTHWHILE = 0.03
"""The least gain for which another than the first is taken."""


def fastest(
    candidates: Iterator[TileProgram], cores: int, schedule: Callable[[TileProgram], Program] = schedule
) -> tuple[TileProgram, Program | None]:
    """The first tile program, or the fastest of those that gain enough, with its gain in its notes. A batch alone counts: in a stream of
    batches the first may be as fast, or faster, so that the notes say both.

    It comes with its machine program when there was a choice. Candidates are made one at a time; `cores` share the host link. A candidate
    that no schedule can make fast enough isn't scheduled.
    """
    first = next(candidates)
    others = tuple(candidates) if len(first.instructions) <= LARGEST else ()
    if not others:
        return first, None
    tiles, program = first, _scheduled(first, cores, schedule)
    plain, alone = program, time_program(program)
    fast, whole, best = alone, alone.makespan, alone.makespan
    for other in others:
        most = min((1 - WORTHWHILE) * whole, best - 1)
        if least_cycles(other, cores) > most:
            continue
        made = _scheduled(other, cores, schedule)
        if (timeline := time_program(made)).makespan <= most:
            tiles, program, fast, best = other, made, timeline, timeline.makespan
    if tiles is first:
        return first, program
    gain = f"latency {best:,} cycles (was {whole:,}){_streamed(stream(program, fast), stream(plain, alone))}"
    notes = tuple(f"{note}: {gain}" if note in tiles.notes else note for note in program.notes)  # scheduling's own gain nothing
    return replace(tiles, notes=notes), replace(program, notes=notes)


def _streamed(found: Stream, whole: Stream) -> str:
    """The throughput of a stream; nothing where it is one batch a latency, as the unified buffer has no room for two batches."""
    if not (found.fits and whole.fits):
        return ""
    change = 100 * (whole.cycles / found.cycles - 1)
    size = f"{abs(change):.1f} %"
    return "; throughput is " + ("the same" if size == "0.0 %" else f"{size} {'better' if change > 0 else 'worse'}")


def least_cycles(tiles: TileProgram, cores: int) -> int:
    """A lower bound of the cycles: those of the busiest unit, if it never waited.

    Every switch to a tile is one fetch. Scheduling may join transfers, so the link's latency isn't counted, nor the rounding up of a
    transfer's cycles. Scheduling may add transfers, but it removes none.
    """
    target, touched = tiles.target, effects(tiles.instructions)
    taken = np.where(touched.rows > 0, durations(tiles.instructions, touched, target, cores), 0)
    transfers = touched.host_reads | touched.host_writes
    busy = [int(taken[(touched.engine == unit) & ~transfers].sum()) for unit in UNITS]
    fetches = int(np.count_nonzero(touched.pops)) * target.tile_fetch_cycles
    moved = int(touched.rows[transfers].sum()) * target.mxu * cores * target.clock_hz / target.host_bandwidth
    return max(*busy, fetches, int(moved) - int(np.count_nonzero(transfers)))


def _scheduled(tiles: TileProgram, cores: int, schedule: Callable[[TileProgram], Program]) -> Program:
    return replace(schedule(tiles), cores=cores)
