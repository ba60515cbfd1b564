"""Group 2: every record is an instruction in its one encoding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.fields import constants, kinds, unknown
from tpucc.isa.instructions import SPECS, Opcode
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.numerics import Int64

RULES = (
    Rule("V0201", "opcodes", "The opcode is one that the machine has."),
    Rule("V0202", "flags", "Only flags that the instruction has are set."),
    Rule(
        "V0203", "unused fields", "Fields that the instruction doesn't use are zero (`outer` is 1 where rows are counted by `inner` alone)."
    ),
    Rule("V0204", "enumerations", "Functions and engines are ones that the instruction can have; a wait names at least one engine."),
)


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 2; when there are none, every record is a well-formed instruction."""
    for code, function, indices in kinds(context.program.instructions):
        if code not in SPECS:
            yield from context.each("V0201", indices, f"has the unknown opcode {code}")
        else:
            yield from _flags(context, Opcode(code), function, indices)
            yield from _unused(context, Opcode(code), function, indices)
            yield from _enumerations(context, Opcode(code), function, indices)


def _flags(context: Context, opcode: Opcode, function: int, indices: Int64) -> Iterator[Violation]:
    flags = context.program.instructions["flags"]
    allowed = sum(flag for flag, _ in SPECS[opcode].flags_for(function))
    wrong = indices[(flags[indices] & ~np.uint8(allowed)) != 0]
    yield from context.each("V0202", wrong, lambda i: f"sets flags {int(flags[i]) & ~allowed:#x}, which {opcode.mnemonic} doesn't have")


def _unused(context: Context, opcode: Opcode, function: int, indices: Int64) -> Iterator[Violation]:
    records = context.program.instructions
    for field, value in constants(opcode, function):
        wrong = indices[records[field][indices] != value][:MAX_REPORTED]
        for index in wrong.tolist():
            message = f"has {field} {records[field][index]}; {opcode.mnemonic} doesn't use it, so that it must be {value}"
            yield context.violation("V0203", index, message)


def _enumerations(context: Context, opcode: Opcode, function: int, indices: Int64) -> Iterator[Violation]:
    records = context.program.instructions
    for operand, wrong in unknown(opcode, function, records[indices]):
        for index in indices[wrong][:MAX_REPORTED].tolist():
            yield context.violation("V0204", index, f"has {operand.key} {records[operand.field][index]}, which means nothing")
