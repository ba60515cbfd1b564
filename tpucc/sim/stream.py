"""Batch after batch: the cycles of each when its inputs arrive during the batch before, and its outputs leave during the one after.

The model of a stream:

- A batch *computes* from the moment at which all its inputs are in the unified buffer until its last result is. Batches compute one after
  the other: products and activations of a batch start when those of the batch before have finished.
- At the same time the inputs of the next batch and the outputs of the last one cross the host link. The link first serves the transfers
  that the computing batch waits for: host steps, spilled rows, constants. The others get the rest of its time.
- The weight fetch takes tiles of the next batch as soon as the FIFO has room.
- The unified buffer holds the rows that a batch needs, the inputs of the next one, and the outputs of the last. If there is no room for
  all, transfers don't overlap, and each batch takes as long as one alone.

So a batch takes as long as computing it, or as the link is busy for it, whichever is longer. Computing is timed by running the program
again and again on units that keep their state, each batch when the one before has computed and the link is done, until the weight fetch is
as far ahead as after the run before. From then on every batch takes the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.machine.machine import Machine
from tpucc.machine.parts import Contents
from tpucc.numerics import Int64
from tpucc.sim.timing import Clock, Timeline, instruction_cycles

MOST_RUNS = 12
"""A program whose weight fetch doesn't repeat by then is taken at its last run."""


def in_step(machine: Machine) -> tuple[int, ...]:
    """The units that wait for the batch before: all units except those that fill the queue, which run ahead."""
    ahead = {spec.engine for spec in machine.instructions if machine.queue is not None and spec.writes & machine.queue.place}
    return tuple(unit.engine.value for unit in machine.units if unit.engine not in ahead)


@dataclass(frozen=True, eq=False, slots=True)
class Stream:
    """A batch of a stream, when the stream has settled. Cycles."""

    cycles: int
    """From one batch to the next: the larger of `computing` and `link`; the cycles of a batch alone where two batches don't fit."""
    computing: int
    link: int
    rows: int
    """Rows of the unified buffer that a stream needs."""
    fits: bool
    timeline: Timeline
    """The timeline of the computing batch, from its first cycle on; instructions that ran ahead have negative times. The timeline of a
    batch alone where two batches don't fit."""

    @property
    def waiting(self) -> int:
        """Cycles of each batch in which nothing computes, as the link isn't done."""
        return self.cycles - self.timeline.makespan


def stream(program: Program, alone: Timeline) -> Stream:
    """A batch in a stream of `program`, whose timeline `alone` is known. In a time that is linear in its instructions."""
    touched, machine = effects(program.instructions, program.machine), program.machine
    crossing = crossing_transfers(program, touched)
    cycles = instruction_cycles(program, touched)
    link = int(cycles[touched.engine == machine.account.supplies].sum())
    rows = program.peak_rows + int(touched.rows[crossing].sum())
    memory = machine.holding(Contents.VALUES)
    if memory is None or rows > memory.size(program.target) or not alone.makespan:
        return Stream(alone.makespan, alone.makespan, link, rows, not alone.makespan, alone)
    timeline = _settled(program, touched, np.where(crossing, 0, cycles), link)
    return Stream(max(link, timeline.makespan), timeline.makespan, link, rows, True, timeline)


def crossing_transfers(program: Program, touched: Effects) -> npt.NDArray[np.bool_]:
    """The transfers of the model's inputs and outputs; not those from and to host steps, spills or constants."""
    inputs = {block for port in program.prologue_ports for block in port.blocks}
    read = {port.name for reads, _ in program.step_ports for port in reads}
    outputs = {block for port in program.outputs if port.name not in read for block in port.blocks}
    found = np.zeros(len(program.instructions), np.bool_)
    host = program.instructions["host"].astype(np.int64)
    for blocks, moving in ((inputs, touched.host_reads), (outputs, touched.host_writes)):
        for block in blocks:
            buffer = program.host[block]
            found |= moving & (buffer.start <= host) & (host < buffer.end)
    return found


def _settled(program: Program, touched: Effects, cycles: Int64, link: int) -> Timeline:
    """The timeline of a batch among others, from the moment on at which it may compute; the link is busy `link` cycles for each."""
    clock, begin, before = Clock(program, touched, cycles), 0, None
    units = in_step(program.machine)
    for _ in range(MOST_RUNS):
        fetched, held = len(clock.asked), len(clock.waits)
        clock.run()
        end = max(clock.finished[unit] for unit in units)
        found = clock.timeline(end, begin, fetched, held)
        begin = max(end, begin + link)
        state = _ahead(program, clock, begin)
        if state == before:
            return found
        before = state
        for unit in units:
            clock.free[unit] = clock.finished[unit] = begin
    return found


def _ahead(program: Program, clock: Clock, begin: int) -> tuple[int, ...]:
    """The state of the weight fetch when the next batch begins: the times that its further times depend on, counted from `begin`."""
    last = slice(-program.machine.queue.depth(program.target) if program.machine.queue is not None else 0, None)
    return tuple(time - begin for column in (clock.arrived[last], clock.shifted[last], clock.taken[-1:]) for time in column)
