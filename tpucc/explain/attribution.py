"""Whose work each instruction is: a layer's, or the work on the model's inputs, which is no layer's.

The inputs cross the host link, and some are copied in the unified buffer, as with a border of zero points, before a layer reads them. A
program notes such an instruction with the layer that needs it. Tables, charts and the report ask here instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Origin, Span
from tpucc.isa.effects import Bools, Effects, Walks, effects
from tpucc.isa.program import LayerInfo, Program
from tpucc.machine.parts import Contents
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
    """Pairs of a transfer, from `first` to before `until`, and a resident that it moves rows of, without the resident of its lowest row."""
    found = []
    for index in (first + np.flatnonzero(moves[first:until])).tolist():
        residents = dict.fromkeys(held[walk.low[index] : walk.high[index]].tolist())
        found += [(index, resident) for resident in list(residents)[1:] if resident >= 0]
    return found


_DECLARED = re.compile(r"^\S+ = input : .*@ (\S+)$", re.MULTILINE)
INPUT = "input"
"""The name and the kind of the work on inputs, where it stands among layers."""


@dataclass(frozen=True, eq=False, slots=True)
class Attribution:
    """`layers` are the program's and, if there is work on inputs, the input behind them. `of` has for each instruction its place there, and
    `places` for each of the program's layers: a copy of an input is the input's, and has no instructions of its own then."""

    layers: tuple[LayerInfo, ...]
    of: Int64
    places: Int64


def attribution(program: Program) -> Attribution:
    """Whose work the instructions of a program are."""
    touched, count = effects(program.instructions, program.machine), len(program.layers)
    entering = input_reads(program, touched)
    of, places = program.layer_of.astype(np.int64), np.arange(count)
    if not count or not entering.any():
        return Attribution(program.layers, of, places)
    places[[*_copies(program, touched, entering)]] = count
    return Attribution(
        (*program.layers, LayerInfo(INPUT, INPUT, _declared(program.prologue))), np.where(entering, count, places[of]), places
    )


def _declared(prologue: str) -> Origin:
    """Where the inputs of the host's first graph stand in the source; nowhere if a program was written by hand."""
    spans = [span for text in _DECLARED.findall(prologue) if (span := Span.parse(text)) is not None]
    return Origin(tuple(dict.fromkeys(spans))) or Origin(made_by=INPUT)


def input_reads(program: Program, touched: Effects) -> Bools:
    """Which instructions read rows of the model's inputs from host memory, where constants stand beside them."""
    buffers = {place for port in program.prologue_ports for place in port.blocks}
    order = sorted(range(len(program.host)), key=lambda place: program.host[place].start)
    starts, own = [program.host[place].start for place in order], [place in buffers for place in order]
    found = touched.host_reads
    for walks in touched.holding(Contents.BUFFERS):
        found = found & np.array([False, *own])[np.searchsorted(starts, walks.low, "right")]
    return found


def _copies(program: Program, touched: Effects, entering: Bools) -> Iterator[int]:
    """The layers that copy inputs: what no other instruction of the program has computed."""
    copies = [place for place, layer in enumerate(program.layers) if layer.is_copy]
    if not copies:
        return
    held = owners(program, touched)
    inputs, computed = set(held.target[entering].tolist()), {*held.target[~touched.host_reads].tolist()} - {-1}
    for place in copies:
        own = (program.layer_of == place) & ~touched.host_reads
        sources = set(held.source[own].tolist())
        if sources & inputs and not sources & computed:
            inputs |= set(held.target[own].tolist())
            computed -= inputs
            yield place
