"""What the hardware executes: every instruction of v1 with 8-bit values. Other programs are refused, by the instruction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.isa.listing.instructions import instruction_text
from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machine.parts import AccessPattern
from tpucc.machines.v1 import UNITS, V1, Flag, Place
from tpucc.rtl.shape import BLOCK_BITS, COUNT_BITS, HOST_BITS, QUEUE_BITS, STEP_BITS, TILE_BITS, refused
from tpucc.sim.memories import numbered, rows_of, written


def require_built(program: Program) -> None:
    """Raises `UsageError`: E0960 for a program that is too large, or E0961 for an instruction that isn't built."""
    if program.machine is not V1:
        raise refused(f"{program.name} is a program of the machine {program.machine.name}, and the hardware is v1")
    if program.cores > 1:
        raise refused(f"{program.name} runs on {program.cores} cores, and the hardware has one")
    for what, count, bits in _sizes(program):
        if count > 1 << bits:
            raise refused(f"{program.name} has {count:,} {what}, and the hardware has room for {1 << bits:,}")
    for index, record in enumerate(program.instructions):
        instruction = program.machine.read(record)
        for why in _obstacles(program, instruction):
            text = instruction_text(program.machine, record)
            raise UsageError(Diagnostic("E0961", f"instruction {index:,} `{text}` isn't built in the hardware: {why}"))


def _sizes(program: Program) -> Iterator[tuple[str, int, int]]:
    yield "tiles of weights", program.tile_count, TILE_BITS
    yield "parameter blocks", len(program.blocks), BLOCK_BITS
    yield "rows of host memory", program.host_rows, HOST_BITS
    yield "steps of the host", len(program.host_steps) + 1, STEP_BITS  # the last interrupt is one, too
    engines = program.machine.engine_of[program.instructions["opcode"]]
    for unit in UNITS:
        yield f"instructions of the {unit} unit", int((engines == unit).sum()), QUEUE_BITS


def _obstacles(program: Program, instruction: DecodedInstruction) -> Iterator[str]:
    if Flag.WIDE in instruction.flags:
        yield "values have 8 bits, and wide ones have 16"
    for name in ("outer", "inner", "window_outer", "window_inner"):
        if instruction.values.get(name, 0) >= 1 << COUNT_BITS:
            yield f"{name} is counted in {COUNT_BITS} bits"
    if _reads_its_results(program, instruction):
        yield "it reads a row that it has written: the hardware goes from row to row, and the simulator reads all rows first"


def _reads_its_results(program: Program, instruction: DecodedInstruction) -> bool:
    """Whether a row of the unified buffer is written before the same instruction reads it. Linear in the rows."""
    writes = written(program.machine, instruction)
    if writes is None or writes[0] is not Place.DEST:
        return False
    rows = numbered(writes[1])
    for place in program.machine.rows_in(instruction.reads):
        if place.memory == "ub":
            read = numbered(rows_of(program.machine, instruction, place)).reshape(-1)
            first = np.full(max(rows.max(initial=0), read.max(initial=0)) + 1, len(rows))
            np.minimum.at(first, rows, np.arange(len(rows)))  # how many rows are written before each one is for the first time
            until = len(rows) if place.pattern is AccessPattern.KERNEL else np.arange(len(read)) * len(rows) // len(read)
            if (first[read] < until).any():
                return True
    return False
