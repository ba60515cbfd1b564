"""The instructions of a machine: a row for each mnemonic, with its operands, flags and functions; and one instruction, to be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any

from tpucc.machine.memory import NOWHERE
from tpucc.machine.unit import Cycles
from tpucc.numerics import AnyArray

Space = str
"""The meaning of a field's value: a row of the memory with this name, a `count`, a `step` between rows, an `engine`, several `engines`, a
`function`, or the number of something (`tile`, `block`, `host step`, `tag`)."""
Meaning = Callable[[Any], AnyArray]
"""A function from the operands of an instruction, as `Machine.operands` makes them, to the rows that it writes."""
Waits = Callable[[int, int], tuple[tuple[int, int], ...]]
"""A function from the fields `index` and `engines` to each engine that waits, with the engines that it waits for (bit 1 << e is engine
e)."""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """A field as the assembler shows it: the record's field, its key in the text, its meaning, and its default, at which it may be left
    out.

    An operand `of` a place is there only where the instruction's function reads this place.
    """

    field: str
    key: str
    space: Space
    meaning: str
    default: int | None = None
    of: IntFlag = NOWHERE


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """A flag: its name in the text, its meaning, the places that it makes the instruction read, and the place without which it has no
    meaning.

    `is_unsigned` says that the flag makes the values of the first source unsigned.
    """

    flag: IntFlag
    name: str
    meaning: str
    reads: IntFlag = NOWHERE
    of: IntFlag = NOWHERE
    is_unsigned: bool = False


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function of an instruction: the places that it reads, and its meaning in words and as computation."""

    function: IntEnum
    reads: IntFlag
    summary: str
    meaning: Meaning


@dataclass(frozen=True, eq=False, slots=True)
class Spec:
    """One mnemonic, which is the name of its opcode. `operands` stand in the order of the text.

    All its instructions touch the places `reads` and `writes`; flags and functions add places that are read. The `meaning` computes the
    rows that are written from the operands; each of the `functions` has its own meaning. An instruction occupies its engine for `cycles`.
    An instruction of the control engine is executed by no unit, and may make engines wait (`waits`). `sentence` describes an instruction,
    in words that follow "it".
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
    meaning: Meaning | None = None
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
        """Whether its rows have two dimensions, with pitches and strides."""
        return any(operand.field == "outer" for operand in self.operands)

    def reads_for(self, function: int, flags: int = 0) -> IntFlag:
        """The places that an instruction with this function and these flags reads; for an unknown function, the places that any function
        reads."""
        return _reads(self, function, flags)

    def operands_for(self, function: int) -> tuple[OperandSpec, ...]:
        """The operands in use: a function with one source has none of the second."""
        return _operands(self, function)

    def flags_for(self, function: int) -> tuple[tuple[IntFlag, str], ...]:
        """The flags that mean something, with their names: without a second source there is no `splat_b`."""
        reads = self.reads_for(function)
        return tuple((row.flag, row.name) for row in self.flags.values() if not row.of or row.of & reads)

    def meaning_of(self, function: int) -> Meaning | None:
        """The meaning of an instruction with this function; None if it writes no rows."""
        return next(row.meaning for each, row in self.functions.items() if each == function) if self.functions else self.meaning


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
    """A typed view for reading one record. `Machine.read` makes it."""

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
    def meaning(self) -> Meaning | None:
        return self.spec.meaning_of(self.values.get("function", 0))

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    def __str__(self) -> str:
        """What it does, in words: `multiplies rows 0 to 399 of the unified buffer by the tile in use, into accumulators 0 to 399`."""
        return self.spec.sentence(self)
