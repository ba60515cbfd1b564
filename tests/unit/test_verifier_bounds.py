"""The machine's bounds are exact: what fits to the last row is good, one more is not; and a wait brings no more than it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.machine import TINY, Writer
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.machines.v1 import Engine, Flag, Function, Opcode

SOURCE = """
weights random(seed=0)
model m(x: f32[6, 300]):
    weight w: f32[300, 600]
    return relu(x @ w)
"""


@pytest.fixture(scope="module")
def program() -> Program:
    found: Program = tpucc.compile_source(SOURCE).program.value
    return found


def codes(program: Program) -> set[str]:
    return {violation.code for violation in verify(program)}


def edited(program: Program, opcode: Opcode, **fields: int) -> Program:
    """The program with other fields in its first instruction of that kind."""
    code = program.instructions.copy()
    index = np.flatnonzero(code["opcode"] == opcode)[0]
    for field, value in fields.items():
        code[field][index] = value
    return replace(program, instructions=code)


def rows_of(program: Program, opcode: Opcode) -> int:
    return int(program.instructions["inner"][program.instructions["opcode"] == opcode][0])


def most_waiting(program: Program) -> int:
    """The most tiles that are asked for and not yet switched to, counted one by one."""
    waiting = most = 0
    touched = effects(program.instructions)
    for pushes, pops in zip(touched.pushes.tolist(), touched.pops.tolist(), strict=True):
        waiting += pushes - pops
        most = max(most, waiting)
    return most


MULTIPLY = Opcode.MATRIX_MULTIPLY
BOUNDS: dict[str, Callable[[Program, int], Program]] = {
    "V0301": lambda p, past: edited(p, MULTIPLY, ub=p.target.unified_buffer_rows - rows_of(p, MULTIPLY) + past),
    "V0302": lambda p, past: edited(p, MULTIPLY, acc=p.target.accumulator_rows - rows_of(p, MULTIPLY) + past),
    "V0304": lambda p, past: edited(p, Opcode.READ_WEIGHTS, index=len(p.tiles) - 1 + past),
    "V0305": lambda p, past: edited(p, Opcode.SET_CONFIGURATION, index=len(p.blocks) - 1 + past),
    "V0602": lambda p, past: replace(p, target=msgspec.structs.replace(p.target, weight_fifo_tiles=most_waiting(p) - past)),
}


@each(list(BOUNDS))
def test_bounds_are_exact(code: str, program: Program) -> None:
    assert code not in codes(BOUNDS[code](program, 0))
    assert code in codes(BOUNDS[code](program, 1))


def test_a_wait_brings_what_the_instruction_knew_that_it_waits_for() -> None:
    """The activation unit waits for a product that began before the host's second transfer ended. What the matrix unit's next instruction
    will wait for, the activation unit doesn't know of."""
    program = overtaken(activation_waits_for=1 << Engine.MATRIX)
    assert "V0801" in codes(program)
    assert "V0801" not in codes(overtaken(activation_waits_for=1 << Engine.MATRIX | 1 << Engine.HOST))


def overtaken(activation_waits_for: int) -> Program:
    """A product of row 0; then row 1 comes from the host, the matrix unit is told to wait for it, and a vector reads it."""
    writer = Writer(TINY, rows=2)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=1)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.MATRIX, engines=1 << Engine.HOST)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=1)
    writer.add(Opcode.READ_HOST_MEMORY, host=1, dest=1, inner=1)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.MATRIX, engines=1 << Engine.HOST)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.ACTIVATION, engines=activation_waits_for)
    writer.add(Opcode.ACTIVATE, acc=0, dest=2, inner=1)
    writer.add(Opcode.VECTOR, function=Function.COPY, ub=1, dest=3, inner=1)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.HOST, engines=1 << Engine.ACTIVATION)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=2, host=2, inner=2)
    return writer.program()
