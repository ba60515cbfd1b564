"""Chooses the fastest of several programs with the same results: each candidate is scheduled and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import schedule
from tpucc.sim.stream import Stream, stream
from tpucc.sim.timing import Timeline, time_program

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
    time; `cores` share the host link.
    """
    first = next(candidates)
    others = tuple(candidates) if len(first.instructions) <= LARGEST else ()
    if not others:
        return first, None
    plain, *timed = (_Timed.of(tiles, cores, schedule) for tiles in (first, *others))
    best = min(timed, key=lambda other: other.cycles(goal))
    if best.cycles(goal) > (1 - WORTHWHILE) * plain.cycles(goal):
        return first, plain.program
    gain = f"latency {best.alone:,} cycles (was {plain.alone:,}){_streamed(best.stream, plain.stream)}"
    notes = tuple(f"{note}: {gain}" if note in best.tiles.notes else note for note in best.program.notes)  # scheduling's own gain nothing
    return replace(best.tiles, notes=notes), replace(best.program, notes=notes)


@dataclass(frozen=True)
class _Timed:
    """A tile program with its machine program and the timeline of this."""

    tiles: TileProgram
    program: Program
    timeline: Timeline

    @staticmethod
    def of(tiles: TileProgram, cores: int, schedule: Callable[[TileProgram], Program]) -> _Timed:
        program = replace(schedule(tiles), cores=cores)
        return _Timed(tiles, program, time_program(program))

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
