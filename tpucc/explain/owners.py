"""Which stay of a buffer each instruction reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import Bools, Effects, Walks
from tpucc.isa.program import Program
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False, slots=True)
class Owners:
    """For each instruction the resident (an index of `Program.residents`) of its first and second source and of its target; -1: none.

    `others` are the further residents of a transfer of several buffers: pairs [pairs, 2] of the instruction and one of them.
    """

    source: Int64
    source2: Int64
    target: Int64
    others: Int64


def owners(program: Program, touched: Effects) -> Owners:
    """One pass over the residents in the order in which they come: who owns which row, and the accesses until the next one comes.

    An instruction that brings a resident writes into it, and still reads what was there before.
    """
    order = sorted(range(len(program.residents)), key=lambda index: program.residents[index].first)
    firsts = [program.residents[index].first for index in order]
    held = np.full(max([program.target.unified_buffer_rows, program.peak_rows]), -1, np.int64)
    found = [np.full(len(touched), -1, np.int64) for _ in range(3)]
    others: list[tuple[int, int]] = []
    for place, index in enumerate(order):
        resident = program.residents[index]
        held[resident.start : resident.start + resident.rows] = index
        first, until = firsts[place], firsts[place + 1] if place + 1 < len(order) else len(touched)
        for column, walk, late in zip(found, (touched.source, touched.source2, touched.target), (1, 1, 0), strict=True):
            _look_up(column, walk, held, first + late, until + late)
        for walk, moves, late in ((touched.source, touched.host_writes, 1), (touched.target, touched.host_reads, 0)):
            others += _others(walk, moves, held, first + late, until + late)
    source, source2, target = found
    return Owners(source, source2, target, np.array(others, np.int64).reshape(-1, 2))


def _look_up(column: Int64, walk: Walks, held: Int64, first: int, until: int) -> None:
    """Fills `column` from `first` to before `until`: who holds the lowest row of the walk."""
    low, high = walk.low[first:until], walk.high[first:until]
    used = (high > low) & (low < len(held))
    column[first:until] = np.where(used, held[np.where(used, low, 0)], -1)


def _others(walk: Walks, moves: Bools, held: Int64, first: int, until: int) -> list[tuple[int, int]]:
    """Of the transfers from `first` to before `until`, and each resident but that of its lowest row, the pairs."""
    found = []
    for index in (first + np.flatnonzero(moves[first:until])).tolist():
        residents = dict.fromkeys(held[walk.low[index] : walk.high[index]].tolist())
        found += [(index, resident) for resident in list(residents)[1:] if resident >= 0]
    return found
