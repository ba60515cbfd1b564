"""Instructions as text, a whole program at once: `matrix_multiply ub=h.0+8 acc=0 rows=8, switch, accumulate`.

The machine's listing and the tile program's share this: what differs is the operands that an instruction has and how a value is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import assert_never

from tpucc.ir.textdata import quote
from tpucc.isa.fields import kinds
from tpucc.isa.instructions import SPECS, UNITS, Engine, Flag, Function, Opcode, OperandSpec, Records
from tpucc.numerics import Int64

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/#]*")
"""Names that stand in a listing as they are; others are quoted."""

NUMBER_COLUMN = 64
"""Where the numbers of instructions stand, in lines that aren't longer."""

Operands = Callable[[Opcode, int], Sequence[OperandSpec]]
"""The operands of an opcode with a function, in the order of the text."""
Texts = Callable[[OperandSpec, Int64, Int64], list[str]]
"""The texts of an operand's values: from the operand, the instructions' indices, and the values."""


def machine_operands(opcode: Opcode, function: int) -> Sequence[OperandSpec]:
    """The operands of the machine's instructions, as `SPECS` has them."""
    return SPECS[opcode].operands_for(function)


def instruction_texts(records: Records, operands: Operands = machine_operands, texts: Texts | None = None) -> list[str]:
    """One line of text for each record, without its end; records must be well formed.

    Operands at their default and flags that are clear are left out. `texts` shows values, `plain_texts` unless said.
    """
    lines = [""] * len(records)
    for code, function, indices in kinds(records):
        opcode = Opcode(code)
        columns = [_column(operand, records, indices, texts or plain_texts) for operand in operands(opcode, function)]
        columns.append(_flags(opcode, function, records, indices))
        mnemonic = opcode.mnemonic
        for index, words in zip(indices.tolist(), zip(*columns, strict=True), strict=True):
            lines[index] = mnemonic + "".join(words)
    return lines


def instruction_text(record: Records) -> str:
    """One record as text; one that is no well-formed instruction as its bytes."""
    from tpucc.isa.fields import well_formed

    row = record.reshape(1)
    return instruction_texts(row)[0] if well_formed(row)[0] else raw_text(row)


def raw_text(record: Records) -> str:
    """A record that no instruction has: `raw` and its bytes in hexadecimal."""
    return f"raw {record.tobytes().hex()}"


def numbered(line: str, index: int) -> str:
    """An instruction as a line of a listing, its number in the comment. Readers of the text don't look at the number."""
    return f"    {line:<{NUMBER_COLUMN - 5}} ; {index}"


def plain_texts(operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
    """Names for engines and functions, numbers for everything else."""
    return [_enumerated(operand, value) for value in values.tolist()]


def name_text(name: str) -> str:
    """A name as a listing shows it: as it is, or in quotes."""
    return name if PLAIN.fullmatch(name) else quote(name)


def label_text(name: str, offset: int) -> str:
    """A row of something named: `h.0+8`, `h.0` for the first."""
    return f"{name_text(name)}+{offset}" if offset else name_text(name)


def engines_text(mask: int) -> str:
    """The engines of a `wait`: `host|matrix`. Bit 1 << e stands for engine e."""
    return "|".join(engine.name.lower() for engine in UNITS if mask >> engine & 1)


def _enumerated(operand: OperandSpec, value: int) -> str:
    match operand.space:
        case "engine":
            return Engine(value).name.lower()
        case "engines":
            return engines_text(value)
        case "function":
            return Function(value).name.lower()
        case "ub" | "acc" | "host" | "count" | "step" | "tile" | "block" | "host step" | "tag":
            return str(value)
        case _:
            assert_never(operand.space)


def _column(operand: OperandSpec, records: Records, indices: Int64, texts: Texts) -> list[str]:
    values = records[operand.field][indices].astype("i8")
    shown = [f" {operand.key}={text}" for text in texts(operand, indices, values)]
    if operand.default is not None:
        for position in (values == operand.default).nonzero()[0].tolist():
            shown[position] = ""
    return shown


def _flags(opcode: Opcode, function: int, records: Records, indices: Int64) -> list[str]:
    names = SPECS[opcode].flags_for(function)
    texts: dict[int, str] = {}
    flags = records["flags"][indices].tolist()
    for value in set(flags):
        texts[value] = "".join(f", {name}" for flag, name in names if Flag(value) & flag)
    return [texts[value] for value in flags]
