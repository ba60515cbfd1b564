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
from tpucc.explain.owners import owners
from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.program import LayerInfo, Program
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64

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
