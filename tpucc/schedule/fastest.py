"""Chooses the fastest of several programs with the same results: each candidate that can still win is scheduled and timed."""

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
from tpucc.sim.timing import Timeline, record_cycles, time_program

LARGEST = 100_000
"""Instructions of the largest program for which others are tried."""
WORTHWHILE = 0.03
"""The least gain for which another program than the first is taken, as a share of the first program's cycles."""


def fastest(
    candidates: Iterator[TileProgram],
    cores: int,
    schedule: Callable[[TileProgram], Program] = schedule,
    goal: Literal["latency", "stream"] = "latency",
) -> tuple[TileProgram, Program | None]:
    """The first tile program, or the fastest candidate that gains enough, with the gain in its notes; and its machine program, where there
    was a choice.

    The `goal` says which time counts: of a batch alone, or of each batch in a stream. The notes say both. Candidates are made one at a
    time; `cores` share the host link. A candidate that no schedule can make fast enough isn't scheduled.
    """
    first = next(candidates)
    others = tuple(candidates) if len(first.instructions) <= LARGEST else ()
    if not others:
        return first, None
    plain = _Timed.of(first, cores, schedule)
    tiles, best = first, plain
    for other in others:
        most = min((1 - WORTHWHILE) * plain.cycles(goal), best.cycles(goal) - 1)
        if least_cycles(other, cores) <= most and (timed := _Timed.of(other, cores, schedule)).cycles(goal) <= most:
            tiles, best = other, timed
    if tiles is first:
        return first, plain.program
    gain = f"latency {best.alone:,} cycles (was {plain.alone:,}){_streamed(best.stream, plain.stream)}"
    notes = tuple(f"{note}: {gain}" if note in tiles.notes else note for note in best.program.notes)  # scheduling's own gain nothing
    return replace(tiles, notes=notes), replace(best.program, notes=notes)


@dataclass(frozen=True)
class _Timed:
    """A scheduled program with its timeline."""

    program: Program
    timeline: Timeline

    @staticmethod
    def of(tiles: TileProgram, cores: int, schedule: Callable[[TileProgram], Program]) -> _Timed:
        program = replace(schedule(tiles), cores=cores)
        return _Timed(program, time_program(program))

    @property
    def alone(self) -> int:
        return self.timeline.makespan

    @cached_property
    def stream(self) -> Stream:
        return stream(self.program, self.timeline)

    def cycles(self, goal: Literal["latency", "stream"]) -> int:
        """The cycles that the goal is about: of a batch alone, or of each batch in a stream."""
        return self.stream.cycles if goal == "stream" else self.alone


def _streamed(found: Stream, whole: Stream) -> str:
    """The change of the stream's throughput, in words; empty where the unified buffer has no room for two batches, so that latency says
    all."""
    if not (found.fits and whole.fits):
        return ""
    change = 100 * (whole.cycles / found.cycles - 1)
    size = f"{abs(change):.1f} %"
    if size == "0.0 %":
        return "; throughput is the same"
    return f"; throughput is {size} better" if change > 0 else f"; throughput is {size} worse (--for stream keeps the better one)"


def least_cycles(tiles: TileProgram, cores: int) -> int:
    """A lower bound of a program's cycles: the work of the busiest unit, if it never waited.

    Every switch to a tile is one fetch. Scheduling may join transfers, so the link's latency isn't counted, nor the rounding up of a
    transfer's cycles. Scheduling may add transfers, but it removes none.
    """
    target, touched = tiles.target, effects(tiles.instructions, tiles.machine)
    taken = np.where(touched.rows > 0, record_cycles(tiles, touched, cores), 0)
    transfers = touched.host_reads | touched.host_writes
    busy = [int(taken[(touched.engine == unit) & ~transfers].sum()) for unit in range(tiles.machine.control)]
    fetches = int(np.count_nonzero(touched.pops)) * target.tile_fetch_cycles
    moved = int(link_bytes(tiles, touched).sum()) * cores * target.clock_hz / target.host_bandwidth
    return max(*busy, fetches, int(moved) - int(np.count_nonzero(transfers)))
