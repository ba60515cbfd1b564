"""A program on the simulated hardware: its memories are filled, its records decoded, and then it runs until everything has finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from pyrtl import FastSimulation, MemBlock, SimulationTrace

from tpucc.isa.program import Program
from tpucc.machines.v1.parameter_block import parameter_block_dtype
from tpucc.numerics import Int8
from tpucc.rtl.chip import Chip
from tpucc.rtl.shape import Shape
from tpucc.sim.ports import Host, interrupt

Words = dict[int, int]
"""The contents of a memory: words by their addresses. What isn't there is 0."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run. `signals` has the values of each output of the chip in each cycle, from the first in which instructions may start."""

    cycles: int
    """Cycles until everything had finished, or until the run was given up."""
    finished: bool
    host: Int8
    """[rows, lanes]: host memory in the end."""
    signals: Mapping[str, list[int]]
    trace: SimulationTrace
    seconds: float

    def when(self, name: str) -> list[int]:
        """The cycles in which an output is 1."""
        return [cycle for cycle, value in enumerate(self.signals[name]) if value]


def simulate(
    chip: Chip, program: Program, host_memory: Int8, host: Host, most: int, *, early: bool = False, trace_all: bool = False
) -> Run:
    """Runs a program that `require_built` accepts, at most for `most` cycles. `host_memory` [rows, lanes] has the inputs and constants.

    The records are decoded before the first cycle; with `early`, instructions start while the records after them are decoded. With
    `trace_all`, the trace has all registers.
    """
    block = chip.block
    wires = (
        {w for w in block.wirevector_set if w.name[:3] not in ("tmp", "con")}
        if trace_all
        else {*block.wirevector_subset()} & _outputs(chip)
    )
    simulation = FastSimulation(tracer=SimulationTrace(wires, block), memory_value_map=contents(chip, program, host_memory), block=block)
    memory = simulation.inspect_mem(chip.host.rows)
    waiting = [int.from_bytes(record.tobytes(), "little") for record in program.instructions]
    begin = perf_counter()
    steps = len(program.host_steps)
    if not early:
        for record in waiting:
            simulation.step({"record": record, "valid": 1, "go": 0, "steps": steps})
        waiting = []
    before, step, cycle = len(simulation.tracer.trace["finished"]), 0, -1
    for cycle in range(most + 1):
        feeds = cycle < len(waiting)
        simulation.step({"record": waiting[cycle] if feeds else 0, "valid": int(feeds), "go": 1, "steps": steps})
        if simulation.inspect("finished"):
            break
        if simulation.inspect("host_interrupt") and simulation.inspect("host_starts"):
            rows = _rows(memory, host_memory)
            interrupt(program, step, rows, host)
            memory.update(words(rows))
            step += 1
    seconds = perf_counter() - begin
    signals = {wire.name: simulation.tracer.trace[wire.name][before:] for wire in _outputs(chip)}
    return Run(cycle, bool(signals["finished"][-1]), _rows(memory, host_memory), signals, simulation.tracer, seconds)


def contents(chip: Chip, program: Program, host_memory: Int8) -> dict[MemBlock, Words]:
    """What the memories outside the chip hold before the program starts."""
    shape, count = chip.shape, len(program.tiles)
    lengths = {step: program.target.host_step_cycles(work.elements) for step, work in enumerate(program.host_steps)}
    return {
        chip.host.rows: words(host_memory),
        chip.host.step_cycles: lengths,
        chip.weights.rows: words(program.tiles.reshape(-1, shape.lanes)),
        chip.weights.used: dict.fromkeys(range(count), shape.lanes),
        chip.parameters.blocks: {number: _block(chip, block) for number, block in enumerate(program.blocks)},
        chip.parameters.tables: {
            number << 8 | value: int(entry) & 0xFF
            for number, block in enumerate(program.blocks)
            for value, entry in enumerate(np.roll(block["table"], 128))
        },
    }


def words(rows: Int8) -> Words:
    """The words of rows [rows, lanes], lane 0 in the lowest bits."""
    return {number: int.from_bytes(row.tobytes(), "little") for number, row in enumerate(np.ascontiguousarray(rows))}


def row_of(word: int, shape: Shape) -> Int8:
    """The row [lanes] of a word."""
    return np.frombuffer(word.to_bytes(shape.lanes, "little"), np.int8)


def _rows(memory: Words, like: Int8) -> Int8:
    data = b"".join(memory.get(row, 0).to_bytes(like.shape[1], "little") for row in range(len(like)))
    return np.frombuffer(data, np.int8).reshape(like.shape).copy()


def _outputs(chip: Chip) -> set:
    from pyrtl import Output

    return chip.block.wirevector_subset(Output)


def _block(chip: Chip, block: np.void) -> int:
    """The word of a parameter block."""
    found = {}
    for name in parameter_block_dtype(chip.shape.lanes).names or ():
        if name in ("bias", "multiplier"):
            found.update({f"{name}_{lane}": int(bits) for lane, bits in enumerate(block[name].view(np.uint32))})
        elif name.startswith("scale"):
            found[name] = int(block[name].view(np.uint32))
        elif name not in ("table", "points"):
            found[name] = int(block[name])
    word, first = 0, 0
    for name, bits in chip.parameters.layout.bits.items():
        word |= (found[name] & ((1 << bits) - 1)) << first
        first += bits
    return word
