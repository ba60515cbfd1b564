"""A program on the simulated hardware: its memories are filled, its records decoded, and then it runs until everything has finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pyrtl import FastSimulation, Input, MemBlock, Output, Register, SimulationTrace

from tpucc.isa.program import Program
from tpucc.numerics import AnyArray, Int8
from tpucc.rtl.chip import Chip
from tpucc.sim.ports import Host, interrupt

Words = dict[int, int]
"""The contents of a memory: words by their addresses. What isn't there is 0."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run. `signals` has the values of each output of the chip in each cycle, from the first in which instructions may start."""

    cycles: int
    """Cycles until everything had finished, or until the run was given up."""
    finished: bool
    host: Int8
    """[rows, lanes]: host memory in the end."""
    signals: Mapping[str, list[int]]
    trace: SimulationTrace
    """All cycles, those before included in which records were decoded."""

    def when(self, name: str) -> list[int]:
        """The cycles in which an output is 1."""
        return [cycle for cycle, value in enumerate(self.signals[name]) if value]


def simulate(chip: Chip, program: Program, memory: Int8, host: Host, most: int, *, early: bool = False, registers: bool = False) -> Run:
    """Runs a program that `require_built` accepts, at most for `most` cycles. `memory` [rows, lanes] is host memory with the inputs and the
    constants.

    The records are decoded before the first cycle; with `early`, instructions start while later records are decoded. With `registers`, the
    trace has all registers.
    """
    block, shown = chip.block, chip.block.wirevector_subset(Output)
    traced = shown | (block.wirevector_subset(Register) if registers else set())
    simulation = FastSimulation(tracer=SimulationTrace(traced, block), memory_value_map=contents(chip, program, memory), block=block)
    held, idle = simulation.inspect_mem(chip.host.rows), dict.fromkeys((wire.name for wire in block.wirevector_subset(Input)), 0)
    idle["steps"] = len(program.host_steps)
    records = [int.from_bytes(record.tobytes(), "little") for record in program.instructions]
    for record in [] if early else records:
        simulation.step(idle | {"record": record, "valid": 1})
    before, step, cycle = 0 if early else len(records), 0, 0
    for cycle in range(most + 1):
        decoded = {"record": records[cycle], "valid": 1} if early and cycle < len(records) else {}
        simulation.step(idle | decoded | {"go": 1})
        if simulation.inspect("finished"):
            break
        if simulation.inspect("host_interrupt") and simulation.inspect("host_starts"):
            rows = rows_of(held, memory)
            interrupt(program, step, rows, host)
            held.update(words(rows))
            step += 1
    signals = {wire.name: simulation.tracer.trace[wire.name][before:] for wire in shown}
    return Run(cycle, bool(signals["finished"][-1]), rows_of(held, memory), signals, simulation.tracer)


def contents(chip: Chip, program: Program, memory: Int8) -> dict[MemBlock, Words]:
    """What the memories outside the chip hold before the program starts."""
    lanes, layout = chip.shape.lanes, chip.parameters.layout
    tables = enumerate(np.roll(program.blocks["table"], 128, axis=1).astype(np.uint8).reshape(-1))  # by the bits of a value
    return {
        chip.host.rows: words(memory),
        chip.host.step_cycles: {step: program.target.host_step_cycles(work.elements) for step, work in enumerate(program.host_steps)},
        chip.weights.rows: words(program.tiles.reshape(-1, lanes)),
        chip.weights.used: dict.fromkeys(range(len(program.tiles)), lanes),
        chip.parameters.blocks: {number: layout.word(fields_of(block)) for number, block in enumerate(program.blocks)},
        chip.parameters.tables: {address: int(entry) for address, entry in tables},
    }


def fields_of(block: np.void) -> dict[str, int]:
    """The fields of a parameter block as the activation unit has them: numbers as their bits, those of the columns one by one."""
    whole = {name: block[name] for name in block.dtype.names or () if name not in ("table", "points", "bias", "multiplier")}
    columns = {f"{name}_{column}": value for name in ("bias", "multiplier") for column, value in enumerate(block[name])}
    return {name: int(value.view(np.uint32)) for name, value in {**whole, **columns}.items()}


def words(rows: Int8) -> Words:
    """The words of rows [rows, lanes], lane 0 in the lowest bits."""
    return {number: int.from_bytes(row.tobytes(), "little") for number, row in enumerate(rows)}


def row_of(word: int, lanes: int) -> Int8:
    """The row [lanes] of a word."""
    return np.frombuffer(word.to_bytes(lanes, "little"), np.int8)


def rows_of(memory: Mapping[int, int], like: AnyArray) -> Int8:
    """The first rows of a memory, as many as `like` has: a new array."""
    return np.array([row_of(memory.get(number, 0), like.shape[1]) for number in range(len(like))], np.int8).reshape(like.shape)
