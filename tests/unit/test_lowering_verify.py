"""The checker of tile programs: each of its rules refuses a program that breaks it, and only that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import TINY, chain, lstm
from tpucc.diagnostics import ProgramError
from tpucc.isa.verify import Violation, reported
from tpucc.isa.verify.rules import MAX_REPORTED
from tpucc.lowering.lower import lower
from tpucc.lowering.tileprogram import TileProgram, VirtualBuffer
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Flag, Opcode

GOOD = lower(chain(8, 9, 7), TINY)
READ, MULTIPLY, ACCUMULATE, CONFIGURE, ACTIVATE, WRITE = 0, 1, 3, 6, 7, 8
"""Positions of the first instruction of each kind in `GOOD`."""

Change = Callable[[Any], None]


def changed(position: int, **fields: int) -> TileProgram:
    code = GOOD.instructions.copy()
    for field, value in fields.items():
        code[field][position] = value
    return replace(GOOD, instructions=code)


def without(position: int) -> TileProgram:
    return replace(GOOD, instructions=np.delete(GOOD.instructions, position))


def test_positions_are_as_named() -> None:
    opcodes = [Opcode.READ_HOST_MEMORY, Opcode.MATRIX_MULTIPLY, Opcode.MATRIX_MULTIPLY]
    opcodes += [Opcode.SET_CONFIGURATION, Opcode.ACTIVATE, Opcode.WRITE_HOST_MEMORY]
    assert GOOD.instructions["opcode"][[READ, MULTIPLY, ACCUMULATE, CONFIGURE, ACTIVATE, WRITE]].tolist() == opcodes


@each([GOOD, lower(lstm(2, 3, 5, 6), TINY), lower(chain(9, 9, 7), TINY, parts=4)])
def test_what_lowering_makes_is_accepted(tiles: TileProgram) -> None:
    verify_tiles(tiles)


REJECTED: list[tuple[str, str, TileProgram]] = [
    ("wrong type of records", "E0750", replace(GOOD, instructions=GOOD.instructions["opcode"])),
    ("group without rows", "E0750", replace(GOOD, groups=(8, 0))),
    ("two buffers of one name", "E0750", replace(GOOD, buffers=(*GOOD.buffers, GOOD.buffers[0]))),
    ("home of other rows", "E0750", replace(GOOD, buffers=(*GOOD.buffers, VirtualBuffer("q", 7, 0, 0)))),
    ("home that is an output", "E0750", replace(GOOD, buffers=(*GOOD.buffers, VirtualBuffer("q", 8, 0, 3)))),
    ("buffer of no layer", "E0750", replace(GOOD, buffers=(*GOOD.buffers, VirtualBuffer("q", 8, 5)))),
    ("port of other shape", "E0750", replace(GOOD, inputs=(replace(GOOD.inputs[0], shape=(8, 99)),))),
    ("unknown opcode", "E0751", changed(READ, opcode=99)),
    ("a fetch", "E0751", changed(READ, opcode=Opcode.READ_WEIGHTS)),
    ("an end", "E0751", changed(WRITE, opcode=Opcode.HALT)),
    ("unused field", "E0751", changed(MULTIPLY, dest_pitch=1)),
    ("unknown flag", "E0751", changed(MULTIPLY, flags=128)),
    ("no such layer", "E0752", changed(MULTIPLY, layer=9)),
    ("no such buffer", "E0752", changed(MULTIPLY, ub_buffer=99)),
    ("no buffer", "E0752", changed(ACTIVATE, dest_buffer=-1)),
    ("a buffer too many", "E0752", changed(MULTIPLY, dest_buffer=0)),
    ("no group", "E0752", changed(MULTIPLY, group=-1)),
    ("no such tile", "E0752", changed(MULTIPLY, index=6)),
    ("no such parameter block", "E0752", changed(CONFIGURE, index=2)),
    ("no rows", "E0753", changed(MULTIPLY, inner=0)),
    ("rows past the buffer", "E0753", changed(MULTIPLY, ub=1)),
    ("rows past the group", "E0753", changed(MULTIPLY, acc=1)),
    ("rows past the host buffer", "E0753", changed(WRITE, host=GOOD.instructions["host"][WRITE] + 9)),
    ("rows never read from the host", "E0754", without(READ)),
    ("rows partly written", "E0754", changed(ACTIVATE, inner=7, dest=1)),
    ("a sum not begun", "E0755", changed(MULTIPLY, flags=int(Flag.SWITCH | Flag.ACCUMULATE))),
    ("a sum begun twice", "E0755", changed(ACCUMULATE, flags=int(Flag.SWITCH))),
    ("a sum never activated", "E0755", replace(GOOD, instructions=GOOD.instructions[:ACTIVATE])),
    ("an empty sum activated", "E0755", changed(ACTIVATE, group=1)),
    ("no parameter block", "E0756", without(CONFIGURE)),
    ("no tile", "E0756", changed(MULTIPLY, flags=0, index=0)),
    ("a home read from elsewhere", "E0757", changed(READ, host=8)),
    ("an input written", "E0757", changed(WRITE, host=0)),
    ("an output not written", "E0758", without(WRITE)),
    ("an output written twice", "E0758", replace(GOOD, instructions=np.insert(GOOD.instructions, WRITE, GOOD.instructions[WRITE]))),
]


@each(REJECTED)
def test_what_breaks_a_rule_is_refused(what: str, code: str, tiles: TileProgram) -> None:
    with pytest.raises(ProgramError) as error:
        verify_tiles(tiles)
    assert code in [diagnostic.code for diagnostic in error.value.diagnostics]


def test_messages_show_the_instruction() -> None:
    message = "tile instruction 0 `matrix_multiply ub=x\\.0 acc=g0 rows=8 tile=0, switch` reads row 0 of x\\.0, which nothing has written"
    with pytest.raises(ProgramError, match=message):
        verify_tiles(without(READ))


def test_faults_stand_in_the_order_of_the_program() -> None:
    code = np.delete(GOOD.instructions, [READ, CONFIGURE])
    with pytest.raises(ProgramError) as error:
        verify_tiles(replace(GOOD, instructions=code))
    found = [diagnostic.code for diagnostic in error.value.diagnostics]
    assert found.index("E0754") < found.index("E0756"), "the multiply stands before the activate"


def test_of_each_rule_the_first_faults_are_given() -> None:
    found = reported(Violation(code, "", index) for index in range(30) for code in ("E0754", "E0755"))
    assert [(each.code, each.instruction) for each in found] == [(c, i) for i in range(MAX_REPORTED) for c in ("E0754", "E0755")]
