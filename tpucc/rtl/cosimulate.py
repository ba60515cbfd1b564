"""The hardware beside the simulator: the same results in the same cycles, or the first signal that differs.

The interpreter says what every instruction writes, the clock when it starts and ends. Neither shares anything with the hardware but the
tables of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import UNITS, Engine, Opcode, Place
from tpucc.numerics import AnyArray
from tpucc.rtl.built import require_built
from tpucc.rtl.chip import Chip, chip
from tpucc.rtl.shape import shape_of
from tpucc.rtl.simulate import Run, row_of, simulate
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

    Raises `UsageError` E0950 or E0951 where the hardware can't run it.
    """
    program = begun.program
    require_built(program)
    on = on or chip(shape_of(program.target))
    timeline = time_program(program)
    run = simulate(on, program, begun.memories.buffers.copy(), begun.host, timeline.makespan + MORE, registers=registers)
    found, rows = differences(on, begun, run, timeline)
    return CoSimulation(run, timeline, found, begun.memories.buffers, rows)


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
    """The instructions of a unit that take cycles: all except the last interrupt."""
    touched = effects(program.instructions, program.machine)
    last = touched.interrupts & (program.instructions["index"] >= len(program.host_steps))
    return [int(i) for i in np.flatnonzero((touched.engine == unit) & ~last)]


def _times(program: Program, timeline: Timeline, run: Run) -> Iterator[Difference]:
    """Each start and end of an instruction, each shift and switch of a tile."""
    for unit in UNITS:
        own = executed_by(program, unit)
        for signal, times in (("starts", timeline.start[own]), ("ends", timeline.end[own] - 1)):
            yield from _compared(str(unit), signal, own, run.when(f"{unit}_{signal}"), times.tolist())
    tiles = [i for i in executed_by(program, Engine.WEIGHTS) if program.instructions["opcode"][i] == Opcode.READ_WEIGHTS]
    taken = len(timeline.tiles.taken)
    yield from _compared("weights", "shifts", tiles[:taken], run.when("weights_shifts")[:taken], timeline.tiles.shifting.tolist())
    takes = [i for i in executed_by(program, Engine.MATRIX) if program.instructions["flags"][i] & 1]
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


def _values(chip: Chip, program: Program, run: Run, expected: Sequence[Written | None]) -> Iterator[Difference]:
    """Every row that is written."""
    writes = {"host": (("writes_buffer", Place.DEST), ("writes_host", Place.HOST)), "activation": (("writes", Place.DEST),)}
    for unit, signals in writes.items():
        for signal, place in signals:
            due = _due(program, expected, Engine[unit.upper()], place)
            shown = ((run.signals[f"{unit}_{signal}_row"], run.signals[f"{unit}_{signal}_data"]), run.when(f"{unit}_{signal}"))
            found = [(c, shown[0][0][c], row_of(shown[0][1][c], chip.shape.lanes).tolist()) for c in shown[1]]
            yield from _first(unit, signal, found, due)
    due = _due(program, expected, Engine.MATRIX, Place.ACC)
    for column in range(chip.shape.lanes):
        name = f"accumulators_{column}"
        rows, data = run.signals[f"{name}_row"], np.array(run.signals[f"{name}_data"], np.uint32).view(np.int32)
        found = [(c, rows[c], [int(data[c])]) for c in run.when(name)]
        yield from _first("accumulators", f"column_{column}", found, [(i, row, values[column : column + 1]) for i, row, values in due])


def _due(program: Program, expected: Sequence[Written | None], unit: Engine, place: Place) -> list[tuple[int, int, list[int]]]:
    """For each row that the unit writes at a place: the instruction, the row, its values."""
    found = ((i, expected[i]) for i in executed_by(program, unit))
    return [
        (i, int(row), values.tolist())
        for i, each in found
        if each and each.place is place
        for row, values in zip(each.rows, each.values, strict=True)
    ]


def _first(
    unit: str, signal: str, found: Sequence[tuple[int, int, list[int]]], due: Sequence[tuple[int, int, list[int]]]
) -> Iterator[Difference]:
    """The first row that differs."""
    for (cycle, *hardware), (instruction, *simulator) in zip(found, due, strict=False):
        if hardware != simulator:
            here, there = (f"row {row} becomes {_numbers(values)}" for row, values in (hardware, simulator))
            yield Difference(cycle, unit, signal, instruction, here, there)
            return
    if len(found) != len(due):
        yield Difference(found[-1][0] if found else 0, unit, signal, -1, f"{len(found)} rows written", f"{len(due)} rows")


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _end(timeline: Timeline, run: Run) -> Iterator[Difference]:
    if not run.finished:
        yield Difference(run.cycles, "decoder", "finished", -1, "not finished", f"finished in cycle {timeline.makespan:,}")
    elif run.cycles != timeline.makespan:
        cycles = min(run.cycles, timeline.makespan)
        yield Difference(cycles, "decoder", "finished", -1, f"in cycle {run.cycles:,}", f"in cycle {timeline.makespan:,}")
