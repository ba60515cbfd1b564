"""The hardware beside the simulator: the same results in the same cycles, or the first signal that differs.

The interpreter says what every instruction writes, the clock when it starts and ends. Neither shares anything with the hardware but the
tables of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tpucc.cosimulation.built import require_built
from tpucc.cosimulation.simulate import Run, row_of, simulate
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import UNITS, Engine, Place
from tpucc.numerics import AnyArray
from tpucc.rtl.chip import Chip, chip
from tpucc.rtl.shape import shape_of
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import numbered, written
from tpucc.sim.timing import Timeline, time_program

MORE = 64
"""The hardware is given up after as many cycles more than the clock counts."""


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A signal of a unit that isn't as it must be, in a cycle, and the instruction that it belongs to (-1: none)."""

    cycle: int
    unit: str
    signal: str
    instruction: int
    hardware: str
    simulator: str

    def __str__(self) -> str:
        of = f" (instruction {self.instruction:,})" if self.instruction >= 0 else ""
        return f"cycle {self.cycle:,}, {self.unit}.{self.signal}{of}: {self.hardware}; the simulator: {self.simulator}"


@dataclass(frozen=True, eq=False)
class CoSimulation:
    """A run of the hardware beside the simulator's; `differences` stand in the order of their cycles."""

    run: Run
    timeline: Timeline
    differences: tuple[Difference, ...]
    host: AnyArray
    """[rows, lanes]: the simulator's host memory in the end."""
    rows: int
    """Rows that instructions write, each of which was compared."""

    @property
    def equal(self) -> bool:
        return not self.differences


def cosimulate(begun: Interpreter, on: Chip | None = None, *, registers: bool = False) -> CoSimulation:
    """Runs the program of an interpreter that has begun, on the hardware of its target and by the interpreter.

    Raises `UsageError` E0960 or E0961 where the hardware can't run it.
    """
    program = begun.program
    require_built(program)
    on = on or chip(shape_of(program.target))
    timeline = time_program(program)
    run = simulate(on, program, begun.memories.buffers.copy(), begun.host, timeline.makespan + MORE, registers=registers)
    found, rows = differences(on, begun, run, timeline)
    return CoSimulation(run, timeline, found, begun.memories.buffers, rows)


def early_cycles(begun: Interpreter, on: Chip) -> int:
    """The cycles when a decoder that takes a record a cycle begins together with the program, which the clock leaves out."""
    program = begun.program
    most = time_program(program).makespan + len(program.instructions) + MORE
    return simulate(on, program, begun.memories.buffers, begun.host, most, early=True).cycles


def differences(on: Chip, begun: Interpreter, run: Run, timeline: Timeline) -> tuple[tuple[Difference, ...], int]:
    """Where a run differs, in the order of the cycles; and the number of rows that were compared. Executes the interpreter's program."""
    program = begun.program
    expected = [_executed(begun, index) for index in range(len(program.instructions))]
    found = [*_times(program, timeline, run), *_values(on, program, run, expected), *_end(timeline, run)]
    return tuple(sorted(found)), sum(len(each.rows) for each in expected if each)


@dataclass(frozen=True, eq=False, slots=True)
class Written:
    """What an instruction writes: the place, and the rows in the order of its walk with their values."""

    place: Place
    rows: AnyArray
    values: AnyArray


def _executed(interpreter: Interpreter, index: int) -> Written | None:
    """Executes the next instruction by the interpreter."""
    instruction: DecodedInstruction = interpreter.execute(index)
    found = written(interpreter.program.machine, instruction)
    if found is None:
        return None
    place, rows = found[0], numbered(found[1])
    memory = interpreter.program.machine.rows_at(place).memory
    return Written(Place(place), rows, interpreter.memories[memory][rows].copy())


def executed_by(program: Program, unit: Engine) -> list[int]:
    """The numbers of the instructions of a unit that take cycles: all except the last interrupt."""
    touched = effects(program.instructions)
    last = touched.interrupts & (program.instructions["index"] >= len(program.host_steps))
    return [int(i) for i in np.flatnonzero((touched.engine == unit) & ~last)]


def _times(program: Program, timeline: Timeline, run: Run) -> Iterator[Difference]:
    """Each start and end of an instruction, each shift and switch of a tile."""
    touched = effects(program.instructions)
    for unit in UNITS:
        own = executed_by(program, unit)
        for signal, times in (("starts", timeline.start[own]), ("ends", timeline.end[own] - 1)):
            yield from _compared(str(unit), signal, own, run.when(f"{unit}_{signal}"), times.tolist())
    tiles, takes, taken = np.flatnonzero(touched.pushes).tolist(), np.flatnonzero(touched.pops).tolist(), len(timeline.tiles.taken)
    yield from _compared("weights", "shifts", tiles[:taken], run.when("weights_shifts")[:taken], timeline.tiles.shifting.tolist())
    yield from _compared("matrix", "takes", takes, run.when("matrix_takes"), timeline.tiles.taken.tolist())


def _compared(unit: str, signal: str, own: Sequence[int], found: Sequence[int], times: Sequence[int]) -> Iterator[Difference]:
    """The first difference of two lists of cycles."""
    for instruction, *pair in zip(own, found, times, strict=False):
        if pair[0] != pair[1]:
            yield Difference(min(pair), unit, signal, instruction, f"in cycle {pair[0]:,}", f"in cycle {pair[1]:,}")
            return
    if len(found) != len(times):
        cycle = [*found, *times][-1]
        yield Difference(cycle, unit, signal, -1, f"{len(found)} times", f"{len(times)} times")


class _Row(NamedTuple):
    """A row that is written: the cycle, or the instruction, and the values."""

    at: int
    row: int
    values: list[int]

    def __str__(self) -> str:
        return f"row {self.row} becomes {' '.join(map(str, self.values))}"


WRITES = (
    (Engine.HOST, "writes_buffer", Place.DEST),
    (Engine.HOST, "writes_host", Place.HOST),
    (Engine.ACTIVATION, "writes", Place.DEST),
)
"""The signals by which units write rows, and the places that instructions write by them."""


def _values(chip: Chip, program: Program, run: Run, expected: Sequence[Written | None]) -> Iterator[Difference]:
    """Every row that is written."""
    lanes = chip.shape.lanes
    for unit, signal, place in WRITES:
        name = f"{unit}_{signal}"
        rows, data = run.signals[f"{name}_row"], run.signals[f"{name}_data"]
        found = [_Row(cycle, rows[cycle], row_of(data[cycle], lanes).tolist()) for cycle in run.when(name)]
        yield from _first(str(unit), signal, found, _due(program, expected, unit, place))
    sums = _due(program, expected, Engine.MATRIX, Place.ACC)
    for column in range(lanes):
        name = f"accumulators_{column}"
        rows, totals = run.signals[f"{name}_row"], np.array(run.signals[f"{name}_data"], np.uint32).view(np.int32).tolist()
        found = [_Row(cycle, rows[cycle], [totals[cycle]]) for cycle in run.when(name)]
        yield from _first("accumulators", f"column_{column}", found, [_Row(each.at, each.row, [each.values[column]]) for each in sums])


def _due(program: Program, expected: Sequence[Written | None], unit: Engine, place: Place) -> list[_Row]:
    """The rows that a unit must write at a place."""
    found = ((index, expected[index]) for index in executed_by(program, unit))
    parts = ((index, each) for index, each in found if each is not None and each.place is place)
    return [_Row(index, *row) for index, each in parts for row in zip(each.rows.tolist(), each.values.tolist(), strict=True)]


def _first(unit: str, signal: str, found: Sequence[_Row], due: Sequence[_Row]) -> Iterator[Difference]:
    """The first row that differs."""
    for hardware, simulator in zip(found, due, strict=False):
        if hardware[1:] != simulator[1:]:
            yield Difference(hardware.at, unit, signal, simulator.at, str(hardware), str(simulator))
            return
    if len(found) != len(due):
        yield Difference(found[-1].at if found else 0, unit, signal, -1, f"{len(found)} rows written", f"{len(due)} rows")


def _end(timeline: Timeline, run: Run) -> Iterator[Difference]:
    if not run.finished:
        yield Difference(run.cycles, "decoder", "finished", -1, "not finished", f"finished in cycle {timeline.makespan:,}")
    elif run.cycles != timeline.makespan:
        cycles = min(run.cycles, timeline.makespan)
        yield Difference(cycles, "decoder", "finished", -1, f"in cycle {run.cycles:,}", f"in cycle {timeline.makespan:,}")
