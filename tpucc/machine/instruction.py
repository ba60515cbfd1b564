"""The instructions of a machine: a row for each mnemonic, with its operands, flags and functions; and one instruction, to be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tpucc.machine.parts import NOWHERE, Cycles
from tpucc.numerics import AnyArray

Space = str
"""What the number in a field counts, or is the number of: a row of the memory with this name, a `count`, a `step` between rows, an
`engine`, several `engines`, a `function`, a `lane`, the `extent` of a block in rows or lanes, or the number of something (`tile`, `block`,
`host step`, `tag`, `expression`)."""
ComputeRows = Callable[[Any], AnyArray]
"""A function from the operands of an instruction, as `Machine.operands` makes them, to the rows that it writes."""
Waits = Callable[[int, int], tuple[tuple[int, int], ...]]
"""A function from the fields `index` and `engines` to pairs: the number of an engine that waits, and a mask of the engines that it waits
for. In a mask, as `engines` is one, the bit 1 << e stands for engine e."""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """A field as the assembler shows it: the record's field, its key in the text, its meaning in words, and its default, at which it may be
    left out.

    A *place* is a bit that stands for something an instruction reads or writes: rows of a memory at one operand, or another source. An
    operand with the place `of` is there only where the instruction's function reads this place.
    """

    field: str
    key: str
    space: Space
    meaning: str
    default: int | None = None
    of: IntFlag = NOWHERE


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """A flag: its name in the text, its meaning in words, the places that it makes the instruction read, and the place without which it has
    no meaning.

    `is_unsigned` says that the flag makes the values of the first source unsigned, `is_half` that it moves the upper halves of values.
    """

    flag: IntFlag
    name: str
    meaning: str
    reads: IntFlag = NOWHERE
    of: IntFlag = NOWHERE
    is_unsigned: bool = False
    is_half: bool = False


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of an instruction: the places that it reads, a summary in words, and how it computes the rows that are written."""

    function: IntEnum
    reads: IntFlag
    summary: str
    compute: ComputeRows


@dataclass(frozen=True, eq=False, slots=True)
class Spec:
    """One mnemonic, which is the name of its opcode. `operands` stand in the order of the text.

    All its instructions touch the places `reads` and `writes`; flags and functions add places that are read. `compute` makes the rows that
    are written from the operands; each of the `functions` has its own. With `by_rows`, each row that is written is computed from one row of
    each operand, whichever it is. Where an instruction only copies lanes of its first source, and leaves the others of the rows that it
    writes as they are, `copied` gives these lanes of the source and of the result.

    An engine is a queue of instructions, and a unit executes them: an instruction occupies the unit of its engine for as many cycles as
    `cycles` gives for its workload. No unit executes the instructions of the control engine, which may make engines wait (`waits`).
    `sentence` describes an instruction, in words that follow "it".
    """

    opcode: IntEnum
    engine: IntEnum
    summary: str
    cycles: Cycles
    sentence: Callable[[DecodedInstruction], str]
    operands: tuple[OperandSpec, ...] = ()
    flags: Mapping[IntFlag, FlagSpec] = field(default_factory=dict)
    functions: Mapping[IntEnum, FunctionSpec] = field(default_factory=dict)
    reads: IntFlag = NOWHERE
    writes: IntFlag = NOWHERE
    compute: ComputeRows | None = None
    by_rows: bool = False
    copied: Callable[[DecodedInstruction], tuple[slice, slice] | None] = lambda instruction: None
    waits: Waits = lambda index, engines: ()

    @property
    def mnemonic(self) -> str:
        return self.opcode.name.lower()

    @property
    def touched(self) -> IntFlag:
        """All places that some instruction of this mnemonic reads or writes."""
        return self.reads_for(-1, sum(self.flags)) | self.writes

    @property
    def is_walked(self) -> bool:
        """Whether its rows are walked in two loops, with a pitch from row to row of the outer one and a stride of the inner one."""
        return any(operand.field == "outer" for operand in self.operands)

    def reads_for(self, function: int, flags: int = 0) -> IntFlag:
        """The places that an instruction with this function and these flags reads; for an unknown function, the places that any function
        reads."""
        return _reads(self, function, flags)

    def operands_for(self, function: int) -> tuple[OperandSpec, ...]:
        """The operands that are in use: those without an `of`, and those of places that the function reads."""
        return _operands(self, function)

    def flags_for(self, function: int) -> tuple[tuple[IntFlag, str], ...]:
        """The flags that are in use, with their names: those without an `of`, and those of places that the function reads."""
        reads = self.reads_for(function)
        return tuple((row.flag, row.name) for row in self.flags.values() if not row.of or row.of & reads)

    def compute_of(self, function: int) -> ComputeRows | None:
        """What computes the rows of an instruction with this function; None if it writes no rows. Raises `StopIteration` for a function
        that the mnemonic doesn't have, which the verifier refuses."""
        return next(row.compute for each, row in self.functions.items() if each == function) if self.functions else self.compute


@cache
def _reads(spec: Spec, function: int, flags: int) -> IntFlag:
    places = spec.reads
    for each, row in spec.functions.items():
        if each == function or function not in spec.functions:
            places |= row.reads
    for flag, of_flag in spec.flags.items():
        if flags & flag:
            places |= of_flag.reads
    return places


@cache
def _operands(spec: Spec, function: int) -> tuple[OperandSpec, ...]:
    reads = _reads(spec, function, 0)
    return tuple(operand for operand in spec.operands if not operand.of or operand.of & reads)


@dataclass(frozen=True, slots=True)
class DecodedInstruction:
    """One encoded instruction, a record of a program, with its fields as integers. `Machine.read` makes it."""

    spec: Spec
    flags: IntFlag
    values: Mapping[str, int]

    @property
    def opcode(self) -> IntEnum:
        return self.spec.opcode

    @property
    def reads(self) -> IntFlag:
        return self.spec.reads_for(self.values.get("function", 0), self.flags)

    @property
    def writes(self) -> IntFlag:
        return self.spec.writes

    @property
    def compute(self) -> ComputeRows | None:
        return self.spec.compute_of(self.values.get("function", 0))

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    def __str__(self) -> str:
        """What it does, in words: `multiplies rows 0 to 399 of the unified buffer by the tile in use, into accumulators 0 to 399`."""
        return self.spec.sentence(self)


# The record that every instruction of every machine is: 64 bytes with named fields.


Records = npt.NDArray[np.void]
"""Instructions: a structured array of `RECORD`."""

RECORD = np.dtype(
    [(name, "u1") for name in ("opcode", "flags", "function", "engines")]
    + [(name, "<u4") for name in ("host", "ub", "ub2", "dest", "acc", "index", "outer", "inner")]
    + [(f"{walk}_{step}", "<u4") for walk in ("ub", "ub2", "dest") for step in ("pitch", "stride")]
    + [(f"window_{walk}", "<u2") for walk in ("outer", "inner")]
)
"""64 bytes, little endian. Fields that an instruction doesn't use are zero; `outer` is 1 where `inner` is used and `outer` isn't.

`host`, `ub`, `ub2`, `dest` and `acc` are first rows; in which memory they lie says the machine (`tpucc.machine.parts.RowPlace`). `index`
is the number of an entry of the queue, of a parameter block, an engine, a host step or a tag. Rows are walked in two dimensions: row (o, i)
of a walk lies at `start + o * pitch + i * stride` for o below `outer` and i below `inner`. A walk without steps of its own is dense: row
`start + o * inner + i`. In a memory of bytes, a value of several bytes lies in as many rows, the lowest bytes first.
"""
FIELDS: tuple[str, ...] = RECORD.names or ()
OPERANDS = tuple(field for field in FIELDS if field not in ("opcode", "flags"))
MAXIMUM = {field: int(np.iinfo(RECORD[field]).max) for field in FIELDS}
"""The largest value of each field."""


# Tables that have exactly one row for each member of an enumeration.


Member = TypeVar("Member", bound=Enum)
Row = TypeVar("Row")


def one_row_each(name: str, members: type[Member], rows: Sequence[Row], member_of: Callable[[Row], Member]) -> Mapping[Member, Row]:
    """The rows by their members. `name` is the table's name, for messages.

    Raises `TypeError` when a member has no row, or two.
    """
    table: dict[Member, Row] = {}
    for row in rows:
        member = member_of(row)
        if member in table:
            raise TypeError(f"{members.__name__}.{member.name} has two rows in {name}: it can have one only")
        table[member] = row
    missing = [f"{members.__name__}.{member.name}" for member in members if member not in table]
    if missing:
        raise TypeError(f"{', '.join(missing)} has no row in {name}: nothing would know what it means")
    return MappingProxyType(table)
