"""The parts of which a machine is made: units, memories, encodings of number formats, a queue and a register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import DeviceFormat
from tpucc.numerics import Int64
from tpucc.target import Target


def _nothing(target: Target) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit executes its own instructions in their order, beside the other units.

    The name of its `engine` is its word in listings, `title` its name in sentences. `limit` is what limits a program that waits for this
    unit, as "weight memory"; empty where none does. `done` are words about an instruction that is waited for: `title` is put in first, then
    `number` and `end`. `drain` is the number of cycles after an instruction's end until other units see its results.
    """

    engine: IntEnum
    title: str
    limit: str = ""
    done: str = "{title}, whose instruction {{number}} ends in cycle {{end}}"
    drain: Callable[[Target], int] = _nothing

    @property
    def word(self) -> str:
        """The name of the engine in lower case, as listings have it: `matrix`."""
        return self.engine.name.lower()


@dataclass(frozen=True, slots=True)
class Account:
    """The units by which the cycles of a program are accounted for. The idle cycles of the unit that `computes` are explained. It may wait
    for the unit that `supplies` its inputs, or for the unit that `finishes`: that one must take its earlier results away. A unit that does
    several of these is named for each."""

    computes: IntEnum
    finishes: IntEnum
    supplies: IntEnum


@dataclass(frozen=True, eq=False, slots=True)
class Workload:
    """The amount of work of some instructions: int64 columns with an entry for each; `target` and `cores` hold for all."""

    rows: Int64
    """Rows that are moved or computed."""
    bytes_per_value: Int64
    window: Int64
    """The rows that are read for each row: the rows of a pooling window, else 1."""
    elements: Int64
    """The number of values that the host computes at an interrupt, which costs time even for 0; -1 if there is no work, and no time."""
    link_bytes: Int64
    """Bytes that cross the interface of the memory of buffers (v1: the host link), padding included."""
    bundles: Int64
    """Bundles of operations for each register of rows, of an instruction with an expression; else 0."""
    target: Target
    cores: int
    """The cores that share the host and its link."""

    def of(self, indices: Int64) -> Workload:
        """The work of the instructions with these positions."""
        columns = self.rows, self.bytes_per_value, self.window, self.elements, self.link_bytes, self.bundles
        rows, size, window, elements, moved, bundles = (column[indices] for column in columns)
        return Workload(rows, size, window, elements, moved, bundles, self.target, self.cores)


Cycles = Callable[[Workload], Int64 | int]
"""The cycles for which instructions occupy their unit, one entry each or one number for all. The first sentence of its docstring stands in
the reference of the machine."""


def no_time(work: Workload) -> int:
    """Takes no cycles: no unit executes it."""
    return 0


def one_cycle(work: Workload) -> int:
    """Takes one cycle."""
    return 1


def one_a_row(work: Workload) -> Int64:
    """Takes one cycle for each row of bytes that it reads: two for a row of 16-bit values, and these for each row of a window."""
    return work.rows * work.bytes_per_value * work.window


# The memories of a machine, and the rows in them that instructions read and write.


NOWHERE: Any = 0
"""No place: the default of the places that an instruction reads and writes."""


class Contents(Enum):
    """What the rows of a memory hold. It decides which rules of the verifier are about the memory."""

    VALUES = "values"
    """Values. A program may say which buffer lies in which rows when: its memory map."""
    SUMS = "sums"
    """Sums: begun by a write, added to by writes that read, and used by reads, in this order."""
    BUFFERS = "buffers"
    """Buffers that the program names: inputs and constants, which are there before it starts, outputs, scratch rows,
    and states. A state is there when a run starts, and the run replaces it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Rows of lanes of one type.

    `name` is the word of operands (`OperandSpec.space`), `title` and `row` name the memory and a row of it in messages. `rows` gives the
    number of its rows; a memory of buffers has as many as the program's buffers need. `spills_to` is the memory to which a program writes
    rows that don't fit, and from which it reads them again: one instruction moves rows there, and one moves them back.
    """

    name: str
    title: str
    row: str
    contents: Contents
    dtype: np.dtype[Any]
    rows: Callable[[Target], int] | None = None
    spills_to: str = ""

    def __post_init__(self) -> None:
        if (self.rows is None) is not (self.contents is Contents.BUFFERS):
            raise TypeError(f"the memory {self.name} must say how many rows it has, unless it holds the program's buffers")

    @property
    def is_of_bytes(self) -> bool:
        """Whether a value of several bytes lies in as many rows."""
        return self.dtype.itemsize == 1

    def size(self, target: Target) -> int:
        """The number of its rows. Not for a memory of buffers."""
        assert self.rows is not None
        return self.rows(target)


class AccessPattern(Enum):
    """How the rows of a place follow from the fields of an instruction."""

    DENSE = "dense"
    """`outer · inner` rows, one after the other."""
    WALK = "walk"
    """A walk in two dimensions, with the pitch and the stride of its own field."""
    WINDOWS = "windows"
    """A walk with a window of rows at each of its steps: `window_outer`, `window_inner`, `ub2_pitch` and `ub2_stride`."""
    KERNEL = "kernel"
    """One row for each row of a window, one after the other. Every row of the result is computed from all of them."""
    BLOCK = "block"
    """`window_inner` rows, one after the other. Every row of the result is computed from all of them."""
    TABLE = "table"
    """As many rows as the field `index` says, one after the other. The instruction's indices choose some of them, so that any may be read
    or written."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The rows of a place: their memory, the field with the first of them, and their pattern.

    What is read there is the `operand` of the instruction's `compute`. With the flag `splat`, lane 0 stands for all lanes.
    """

    place: IntFlag
    memory: str
    field: str
    pattern: AccessPattern = AccessPattern.WALK
    operand: str = ""
    splat: int = 0


# The encoding of number formats in instructions and registers: one row for each format of the machine.


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a format: `flag` is set in instructions that compute in it, `table` is the field of a parameter block with its
    functions."""

    format: DeviceFormat
    flag: int
    table: str = ""


# The state of a machine besides its memories: a queue of entries, expressions, and a register.


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue between two units, with a shadow: one unit asks for entries, the other takes them into use in the same order.

    An instruction that writes `place` asks for the entry `index` of the program's tiles; one that reads `place` takes the oldest entry into
    use, and one that reads `used` computes with the entry in use, which its `compute` gets under the name `operand`. An instruction that
    writes `stored` reads rows of a memory, which become the contents of the entry `index`. An entry waits in one of `depth` places, is
    shifted into the shadow in `shift` cycles as soon as the entry before it has been taken into use, and then leaves its place.

    An instruction that writes `place` and computes something *pushes* what it computes as an entry, which the program's tiles don't have.
    Without `shift` the places are the shadow itself: an entry leaves its place when it is taken into use. `depths` gives the depth of the
    entries that instructions push: int64, one for each record.
    """

    place: IntFlag
    used: IntFlag
    stored: IntFlag
    operand: str
    depth: Callable[[Target], int]
    shift: Callable[[Target], int] | None = None
    depths: Callable[[npt.NDArray[np.void]], Int64] | None = None


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of programs. An instruction that reads `place` computes the expression `index` of its program, which is the `operand`
    of its `compute`.

    `parse` makes it of its text, and raises `ValueError` in words that follow "the expression". A `ParsedExpression` says what the verifier
    and the clock ask of it."""

    place: IntFlag
    operand: str
    parse: Callable[[str], ParsedExpression]


class ParsedExpression(Protocol):
    """What the verifier and the clock ask of an expression: the operands of `compute` that it reads, whether its result has been rounded to
    bfloat16, and its bundles of operations for each register of rows."""

    @property
    def sources(self) -> tuple[str, ...]: ...

    @property
    def is_rounded(self) -> bool: ...

    def bundles(self, target: Target) -> int: ...


@dataclass(frozen=True, slots=True)
class Register:
    """The parameter block in use. An instruction that writes `place` chooses the block `index` of the program; one that reads it computes
    with the block, which its `compute` gets under the name `operand`. `dtype` gives the block's fields by the number of lanes. A field that
    a text leaves out is 0, or has its value in `defaults`."""

    place: IntFlag
    operand: str
    dtype: Callable[[int], np.dtype[Any]]
    defaults: Mapping[str, float] = field(default_factory=dict)
