"""The fastest of several programs with the same results: each candidate that can still win is scheduled and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.link import link_bytes
from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import schedule
from tpucc.sim.stream import Stream, stream
from tpucc.sim.timing import Timeline, durations, time_program

LARGEST = 100_000
"""Instructions of the largest program for which others are tried."""
WORTHWHILE = 0.03
"""The least gain for which another than the first is taken."""


def fastest(
    candidates: Iterator[TileProgram],
    cores: int,
    schedule: Callable[[TileProgram], Program] = schedule,
    goal: Literal["latency", "stream"] = "latency",
) -> tuple[TileProgram, Program | None]:
    """The first tile program, or the fastest of those that gain enough, with its gain in its notes.

    The `goal` says which time counts: a batch's alone, or that of each batch in a stream; the notes say both. It comes with its machine
    program when there was a choice. Candidates are made one at a time; `cores` share the host link. A candidate that no schedule can make
    fast enough isn't scheduled.
    """
    first = next(candidates)
    others = tuple(candidates) if len(first.instructions) <= LARGEST else ()
    if not others:
        return first, None
    tiles, program = first, _scheduled(first, cores, schedule)
    plain = best = _Timed.of(program)
    for other in others:
        most = min((1 - WORTHWHILE) * plain.cycles(goal), best.cycles(goal) - 1)
        if least_cycles(other, cores) > most:
            continue
        made = _scheduled(other, cores, schedule)
        if (timed := _Timed.of(made)).cycles(goal) <= most:
            tiles, program, best = other, made, timed
    if tiles is first:
        return first, program
    gain = f"latency {best.alone:,} cycles (was {plain.alone:,}){_streamed(best.stream, plain.stream)}"
    notes = tuple(f"{note}: {gain}" if note in tiles.notes else note for note in program.notes)  # scheduling's own gain nothing
    return replace(tiles, notes=notes), replace(program, notes=notes)


@dataclass(frozen=True)
class _Timed:
    """A program with its timeline."""

    program: Program
    timeline: Timeline

    @staticmethod
    def of(program: Program) -> _Timed:
        return _Timed(program, time_program(program))

    @property
    def alone(self) -> int:
        return self.timeline.makespan

    @cached_property
    def stream(self) -> Stream:
        return stream(self.program, self.timeline)

    def cycles(self, goal: Literal["latency", "stream"]) -> int:
        """Those that count: of a batch alone, or of each in a stream."""
        return self.stream.cycles if goal == "stream" else self.alone


def _streamed(found: Stream, whole: Stream) -> str:
    """The throughput of a stream; nothing where it is one batch a latency, as the unified buffer has no room for two batches."""
    if not (found.fits and whole.fits):
        return ""
    change = 100 * (whole.cycles / found.cycles - 1)
    size = f"{abs(change):.1f} %"
    if size == "0.0 %":
        return "; throughput is the same"
    return f"; throughput is {size} better" if change > 0 else f"; throughput is {size} worse (--for stream chooses by that)"


def least_cycles(tiles: TileProgram, cores: int) -> int:
    """A lower bound of the cycles: those of the busiest unit, if it never waited.

    Every switch to a tile is one fetch. Scheduling may join transfers, so the link's latency isn't counted, nor the rounding up of a
    transfer's cycles. Scheduling may add transfers, but it removes none.
    """
    target, touched = tiles.target, effects(tiles.instructions, tiles.machine)
    taken = np.where(touched.rows > 0, durations(tiles, touched, cores), 0)
    transfers = touched.host_reads | touched.host_writes
    busy = [int(taken[(touched.engine == unit) & ~transfers].sum()) for unit in range(tiles.machine.control)]
    fetches = int(np.count_nonzero(touched.pops)) * target.tile_fetch_cycles
    moved = int(link_bytes(tiles, touched).sum()) * cores * target.clock_hz / target.host_bandwidth
    return max(*busy, fetches, int(moved) - int(np.count_nonzero(transfers)))


def _scheduled(tiles: TileProgram, cores: int, schedule: Callable[[TileProgram], Program]) -> Program:
    return replace(schedule(tiles), cores=cores)
