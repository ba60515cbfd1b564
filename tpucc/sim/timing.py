"""Time: when every instruction starts and ends, in cycles. No data is needed, only the program.

The units of a machine work at the same time, each on its own instructions in program order; nothing limits how far one runs ahead of
another. A queue brings entries (v1: weight tiles) to a unit. Its shadow holds the next entry while the unit uses the current one. An
instruction that takes an entry starts when the entry is in the shadow; one that asks for an entry, when the queue has a place. On v1, whose
queue is the weight FIFO, this is:

| unit | an instruction starts when the unit is free, the waits of its synchronisations have ended, and | it takes |
|---|---|---|
| host | | a transfer: `Target.link_cycles`, in and out sharing the link; a host step: `Target.host_step_cycles` |
| weight fetch | the tile `weight_fifo_tiles` before it has left the FIFO, shifted in | a tile's bytes over the weight bandwidth |
| weight shift | its tile has arrived, and the shadow is free: the multiply that took the tile before has started | `mxu` cycles |
| matrix | with `switch`: its tile has been shifted in | one cycle a row, two a `wide` one |
| activation | | one cycle a row that it reads, two a `wide` one: a pool reads its whole windows; a configuration takes one |

`synchronize` blocks an engine's next instruction until the named engines have finished all their instructions before the `synchronize`. For
the others, a unit has finished when its results have drained (v1's matrix unit: `pipeline_cycles` after its last row went in). While the
host computes a step, nothing crosses the link. The prologue and the epilogue aren't part of the program's time. Instructions without a unit
take no time. The timeline has a synchronisation at the cycle in which its wait ends, and other such instructions where everything before
them has finished.

Each of N cores has its own engines and weight memory; all share the host and its link. They run one program on parts of equal size and
start together, and time doesn't depend on data. So they are always at the same instruction. Every transfer is one of N that share the
bandwidth evenly, so its bytes take N times as long. Host steps are computed one core after the other, so the last core waits for N. The
timeline is that of the last core; where the link is shared evenly it is that of all. A real link could serve one core after the other. The
cores would fall out of step, and some transfers of one would be hidden behind another's work. This model leaves that out.

Sizes and rates are the `Target`'s. The units and their order are those of the TPU paper (Jouppi et al., ISCA 2017, section 2), which also
gives half speed for products of 8-bit weights and 16-bit activations. The activation unit has half speed then too, because the unified
buffer moves `mxu` bytes a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import Effects, effects
from tpucc.isa.link import link_bytes
from tpucc.isa.program import DeviceProgram, Program
from tpucc.machine.parts import Workload
from tpucc.numerics import Int64


@dataclass(frozen=True, eq=False, slots=True)
class Tiles:
    """The way of each entry of the queue (v1: of each fetched tile), in the order in which they are asked for: cycles, int64. `asked` and
    `arrived` have one for each entry that is asked for, the others one for each that is taken: rule V0603 asks that both are the same."""

    asked: Int64
    """Start of the fetch."""
    arrived: Int64
    """End of the fetch: the tile is in the FIFO."""
    shifting: Int64
    """Start of the shift into the shadow tile."""
    shifted: Int64
    """End of the shift: the tile's place in the FIFO is free."""
    taken: Int64
    """Start of the multiply that switched to it."""


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Timeline:
    """Start and end of each instruction, int64 [instructions]: cycles since the program's start, the end exclusive.

    `makespan` is when everything has finished, what drains from units included.
    """

    start: Int64
    end: Int64
    tiles: Tiles
    waits: Int64
    """For each instruction of the unit that computes (`Machine.account`; v1: the matrix unit) the cycles until which it waits for the unit
    that finishes its results, and for the unit that supplies its inputs: int64 [instructions of the unit, 2]."""
    makespan: int


def time_program(program: Program) -> Timeline:
    """The timeline of a verified program. Takes time linear in the number of instructions."""
    touched = effects(program.instructions, program.machine)
    clock = Clock(program, touched, instruction_cycles(program, touched))
    clock.run()
    return clock.timeline(max(clock.finished))


class Clock:
    """The times of the instructions, found in one pass in program order. Plain lists and integers, for speed."""

    def __init__(self, program: Program, touched: Effects, cycles: Int64) -> None:
        """`cycles` are the durations of the instructions."""
        records, target, machine = program.instructions, program.target, program.machine
        queue, units = machine.queue, len(machine.units)
        self._units = touched.engine.tolist()
        self._specs, self._control = machine.by_opcode, machine.control
        self._opcodes = records["opcode"].tolist()
        self._durations = cycles.tolist()
        self._pushes, self._pops = touched.pushes.tolist(), touched.pops.tolist()
        self._places = queue.depth(target) if queue is not None else 0
        self._shift = queue.shift(target) if queue is not None and queue.shift is not None else 0
        self._index, self._engines = records["index"].tolist(), records["engines"].tolist()
        self._drains = [unit.drain(target) for unit in machine.units]
        account = machine.account
        self._computing, self._finishing, self._supplying = account.computes, account.finishes, account.supplies
        self.start = [0] * len(records)
        self.end = [0] * len(records)
        self.free = [0] * units
        """The cycle in which each unit has finished its own last instruction."""
        self.finished = [0] * units
        """The cycle in which other units see each unit's results: its end and the drain."""
        self.wait_until = [[0] * units for _ in range(units)]
        """For each unit the cycle until which its next instruction waits for each other unit."""
        self.asked, self.arrived = list[int](), list[int]()
        self.shifting, self.shifted, self.taken = list[int](), list[int](), list[int]()
        self._place_free = self.taken if queue is not None and queue.shift is None else self.shifted
        """The cycle in which each entry left its place in the queue: it was in the shadow then, or, where its place is the shadow, in
        use."""
        self.waits: list[tuple[int, int]] = []
        """As `Timeline.waits`."""

    def run(self) -> None:
        """Times all instructions. Run again, the program starts anew on units that are as the run before has left them."""
        control = self._control
        for index, unit in enumerate(self._units):
            if unit == control:
                self._synchronise(index)
            else:
                self._execute(index, unit)

    def timeline(self, end: int, begin: int = 0, fetched: int = 0, waited: int = 0) -> Timeline:
        """The last run, which ended in cycle `end`, in cycles from cycle `begin` on. The runs before it asked for the first `fetched`
        entries, and made the first `waited` entries of `waits`."""
        start, stop = np.array(self.start, np.int64) - begin, np.array(self.end, np.int64) - begin
        columns = (self.asked, self.arrived, self.shifting, self.shifted, self.taken)
        tiles = Tiles(*(np.array(times[fetched:], np.int64) - begin for times in columns))
        waits = np.array(self.waits[waited:], np.int64).reshape(-1, 2) - begin
        return Timeline(start, stop, tiles, waits, end - begin)

    def _execute(self, index: int, unit: int) -> None:
        """An instruction starts when its unit is free, the waits of its synchronisations have ended, the entry that it takes is in the
        shadow, and there is a place for the entry that it asks for."""
        until = self.wait_until[unit]
        start = max(self.free[unit], max(until))
        if self._pops[index]:
            start = max(start, self._shift_in())
            self.taken.append(start)
        if self._pushes[index]:
            place = len(self.asked) - self._places
            start = max(start, self._place_free[place] if place >= 0 else 0)
            self.asked.append(start)
            self.arrived.append(start + self._durations[index])
        self.start[index] = start
        self.end[index] = self.free[unit] = end = start + self._durations[index]
        self.finished[unit] = end + self._drains[unit]
        if unit == self._computing:
            self.waits.append((until[self._finishing], until[self._supplying]))

    def _shift_in(self) -> int:
        """Shifts the next entry into the shadow, and returns the cycle in which the shift ends."""
        shadow_free = self.taken[-1] if self.taken else 0
        start = max(self.arrived[len(self.shifting)], shadow_free)
        self.shifting.append(start)
        self.shifted.append(start + self._shift)
        return start + self._shift

    def _synchronise(self, index: int) -> None:
        waits = self._specs[self._opcodes[index]].waits(self._index[index], self._engines[index])
        time = max([self._wait(*wait) for wait in waits]) if waits else max(self.finished)
        self.start[index] = self.end[index] = time

    def _wait(self, waiting: int, awaited: int) -> int:
        """Holds a unit back until others have finished, and returns the cycle in which they have."""
        until, times = self.wait_until[waiting], []
        for unit, finished in enumerate(self.finished):
            if awaited >> unit & 1:
                until[unit] = finished
                times.append(finished)
        return max(times)


def instruction_cycles(program: Program, touched: Effects) -> Int64:
    """The duration of each instruction of a program: cycles [instructions]."""
    return record_cycles(program, touched, program.cores, [step.elements for step in program.host_steps])


def record_cycles(program: DeviceProgram, touched: Effects, cores: int = 1, host_steps: Sequence[int] = ()) -> Int64:
    """The cycles of each instruction of a program or a tile program, int64 [instructions]. `host_steps` are the numbers of elements that
    the host steps compute; `cores` share the host and its link."""
    records, elements = program.instructions, np.array([*host_steps, -1], np.int64)
    step = np.where(touched.interrupts, np.minimum(records["index"], len(host_steps)), len(host_steps))
    moved = link_bytes(program, touched)
    bundles = expression_bundles(program)
    work = Workload(touched.rows, touched.bytes_per_value, touched.window, elements[step], moved, bundles, program.target, cores)
    taken = np.zeros(len(touched), np.int64)
    for opcode in np.flatnonzero(np.bincount(records["opcode"])).tolist():
        own = np.flatnonzero(records["opcode"] == opcode)
        taken[own] = program.machine.by_opcode[opcode].cycles(work.of(own))
    return taken


def expression_bundles(program: DeviceProgram) -> Int64:
    """The bundles (instruction words of the vector unit) of each instruction's expression, 0 for instructions without one: int64
    [instructions]."""
    bundles = np.zeros(len(program.instructions), np.int64)
    if (kind := program.machine.expressions) is not None:
        computing = np.isin(program.instructions["opcode"], [spec.opcode for spec in program.machine.touching(reading=kind.place)])
        of_each = np.array([kind.parse(text).bundles(program.target) for text in program.expressions], np.int64)
        bundles[computing] = of_each[program.instructions["index"][computing]]
    return bundles
