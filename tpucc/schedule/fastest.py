"""The fastest of several programs with the same results: each is scheduled and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import schedule
from tpucc.sim.timing import time_program

LARGEST = 100_000
"""Instructions of the largest program for which others are tried."""
WORTHWHILE = 0.03
"""The least gain for which another than the first is taken."""


def fastest(
    candidates: Iterator[TileProgram], cores: int, schedule: Callable[[TileProgram], Program] = schedule
) -> tuple[TileProgram, Program | None]:
    """The first tile program, or the fastest of those that gain enough, with its gain in its notes.

    It comes with its machine program when there was a choice. Candidates are made as they are asked for; `cores` share the host link.
    """
    first = next(candidates)
    others = tuple(candidates) if len(first.instructions) <= LARGEST else ()
    if not others:
        return first, None
    found = [(tiles, replace(schedule(tiles), cores=cores)) for tiles in (first, *others)]
    cycles = [time_program(program).makespan for _, program in found]
    best = cycles.index(min(cycles))
    if cycles[best] > (1 - WORTHWHILE) * cycles[0]:
        return found[0]
    tiles, program = found[best]
    notes = tuple(f"{note}: {cycles[best]:,} cycles instead of {cycles[0]:,}" for note in program.notes)
    return replace(tiles, notes=notes), replace(program, notes=notes)
