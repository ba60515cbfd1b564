"""The instruction set: one fixed-width record for every instruction, and what each mnemonic uses of it.

A program's instructions are one NumPy array of `RECORD`. `SPECS` is the single place that says which fields an instruction has; the
assembler, the encoder's checks and the reference in the documentation are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]
"""Instructions: a structured array of `RECORD`."""


class Opcode(IntEnum):
    NOP = 0
    READ_HOST_MEMORY = 1
    WRITE_HOST_MEMORY = 2
    READ_WEIGHTS = 3
    MATRIX_MULTIPLY = 4
    CONVOLVE = 5
    ACTIVATE = 6
    VECTOR = 7
    POOL = 8
    SET_CONFIGURATION = 9
    SYNCHRONIZE = 10
    SYNCHRONIZE_HOST = 11
    INTERRUPT_HOST = 12
    DEBUG_TAG = 13
    HALT = 14

    @property
    def mnemonic(self) -> str:
        return self.name.lower()


class Engine(IntEnum):
    """The units that work at the same time, each on its own instructions in order."""

    HOST = 0
    """Transfers between host memory and the unified buffer, both ways, and what the host computes between two of them."""
    WEIGHTS = 1
    """Fetches of tiles from weight memory to the FIFO."""
    MATRIX = 2
    ACTIVATION = 3
    """Activate, vector, pool and their configuration."""
    CONTROL = 4
    """Instructions that no unit executes: nop, synchronize, tags, halt."""


class Flag(IntFlag):
    """Bits of the record's `flags`."""

    SWITCH = 1
    """The next tile of the FIFO becomes the tile in use."""
    ACCUMULATE = 2
    """Add to the accumulators instead of overwriting them."""
    UNSIGNED = 4
    """Input bytes are 0…255 instead of -128…127."""
    SPLAT = 8
    """Lane 0 of the first source stands for all its lanes."""
    SPLAT2 = 16
    """Lane 0 of the second source stands for all its lanes."""
    WIDE = 32
    """Values have 16 bits: a row of them is two rows of the unified buffer, the low bytes and, after them, the high bytes."""


class Function(IntEnum):
    """What a `vector` or `pool` instruction computes."""

    COPY = 0
    TABLE = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    MAX = 5
    AVERAGE = 6


UNARY = (Function.COPY, Function.TABLE)
"""Functions of `vector` with one source."""
ROWS_OF_WIDE = 2
"""Rows of the unified buffer that a row of 16-bit values takes, and cycles: the buffer moves one row a cycle."""

RECORD = np.dtype(
    [
        ("opcode", "u1"),
        ("flags", "u1"),
        ("function", "u1"),
        ("engines", "u1"),
        ("host", "<u4"),
        ("ub", "<u4"),
        ("ub2", "<u4"),
        ("dest", "<u4"),
        ("acc", "<u4"),
        ("index", "<u4"),
        ("outer", "<u4"),
        ("inner", "<u4"),
        ("ub_pitch", "<u4"),
        ("ub_stride", "<u4"),
        ("ub2_pitch", "<u4"),
        ("ub2_stride", "<u4"),
        ("dest_pitch", "<u4"),
        ("dest_stride", "<u4"),
        ("window_outer", "<u2"),
        ("window_inner", "<u2"),
    ]
)
"""64 bytes, little endian. Fields that an instruction doesn't use are zero; `outer` is 1 where `inner` is used and `outer` isn't.

`ub`, `ub2`, `dest` are unified-buffer rows, `acc` is an accumulator row, `host` a row of host memory; `index` is a weight tile, a
parameter block, an engine, a host step or a tag. Rows are walked in two dimensions: row (o, i) of a walk lies at
`start + o * pitch + i * stride` for o below `outer` and i below `inner`. The accumulators' walk is always
dense: row `acc + o * inner + i`. With the flag `wide`, rows of the unified buffer are those of the low bytes of 16-bit values, and the high
bytes lie in the row after each; the rows that `matrix_multiply` finds one after the other are then two apart.
"""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """A field as the assembler shows it: the record's field, its key in the text, what it means, and the value it may be left out at.

    `space` says what the value is: a row of "ub", "acc" or "host", a "count", a "step", an index of a "tile", "block" or "host step", an
    "engine", "engines", a "function", or a plain "tag".
    """

    field: str
    key: str
    space: str
    meaning: str
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """One mnemonic: the engine that executes it, its operands in the order of the text, and its flags."""

    opcode: Opcode
    engine: Engine
    summary: str
    operands: tuple[OperandSpec, ...]
    flags: tuple[tuple[Flag, str], ...] = ()
    functions: tuple[Function, ...] = ()

    def operands_for(self, function: int) -> tuple[OperandSpec, ...]:
        """The operands in use: copy and table have no second source."""
        if self.opcode is not Opcode.VECTOR or function not in UNARY:
            return self.operands
        return tuple(operand for operand in self.operands if not operand.field.startswith("ub2"))

    def flags_for(self, function: int) -> tuple[tuple[Flag, str], ...]:
        """The flags that mean something: without a second source there is no `splat_b`."""
        unary = self.opcode is Opcode.VECTOR and function in UNARY
        return tuple((flag, name) for flag, name in self.flags if not (unary and flag is Flag.SPLAT2))


_ROWS = OperandSpec("inner", "rows", "count", "rows to move or compute; consecutive")


def _walk(field: str, key: str, meaning: str) -> tuple[OperandSpec, ...]:
    return (
        OperandSpec(field, key, "ub", meaning),
        OperandSpec(f"{field}_pitch", f"{key}_pitch", "step", f"rows from one outer step to the next of {key}", 0),
        OperandSpec(f"{field}_stride", f"{key}_stride", "step", f"rows from one inner step to the next of {key}; 0 repeats a row", 1),
    )


_OUTER = OperandSpec("outer", "outer", "count", "outer steps of the walks", 1)
_INNER = OperandSpec("inner", "inner", "count", "inner steps of the walks")
_ACC = OperandSpec("acc", "acc", "acc", "first accumulator row; dense")
_FUNCTION = OperandSpec("function", "function", "function", "what is computed")
_WIDE = (Flag.WIDE, "wide")
_MATRIX_FLAGS = (
    (Flag.SWITCH, "switch"),
    (Flag.ACCUMULATE, "accumulate"),
    (Flag.UNSIGNED, "unsigned"),
    _WIDE,
)

_ALL = (
    Spec(Opcode.NOP, Engine.CONTROL, "Does nothing.", ()),
    Spec(
        Opcode.READ_HOST_MEMORY,
        Engine.HOST,
        "Host memory to unified buffer.",
        (
            OperandSpec("host", "host", "host", "first row in host memory"),
            OperandSpec("dest", "ub", "ub", "first row in the unified buffer"),
            _ROWS,
        ),
    ),
    Spec(
        Opcode.WRITE_HOST_MEMORY,
        Engine.HOST,
        "Unified buffer to host memory.",
        (
            OperandSpec("ub", "ub", "ub", "first row in the unified buffer"),
            OperandSpec("host", "host", "host", "first row in host memory"),
            _ROWS,
        ),
    ),
    Spec(
        Opcode.READ_WEIGHTS,
        Engine.WEIGHTS,
        "Asks for a weight tile; retires at once, and the tile arrives in the FIFO.",
        (OperandSpec("index", "tile", "tile", "tile in weight memory"),),
    ),
    Spec(
        Opcode.MATRIX_MULTIPLY,
        Engine.MATRIX,
        "Rows of the unified buffer times the tile in use, into the accumulators.",
        (OperandSpec("ub", "ub", "ub", "first input row"), _ACC, _ROWS),
        _MATRIX_FLAGS,
    ),
    Spec(
        Opcode.CONVOLVE,
        Engine.MATRIX,
        "A matrix multiply over a two-dimensional walk of rows: one tap of a convolution.",
        (*_walk("ub", "ub", "first input row"), _ACC, _OUTER, _INNER),
        _MATRIX_FLAGS,
    ),
    Spec(
        Opcode.ACTIVATE,
        Engine.ACTIVATION,
        "Accumulators plus bias, requantised, clamped, through the table if there is one, into the unified buffer.",
        (_ACC, *_walk("dest", "ub", "first output row"), _OUTER, _INNER),
        (_WIDE,),
    ),
    Spec(
        Opcode.VECTOR,
        Engine.ACTIVATION,
        "Element by element in the unified buffer: copy, table, add, subtract, multiply.",
        (
            _FUNCTION,
            *_walk("ub", "a", "first source row"),
            *_walk("ub2", "b", "first row of the second source (add, subtract, multiply)"),
            *_walk("dest", "ub", "first output row"),
            _OUTER,
            _INNER,
        ),
        ((Flag.SPLAT, "splat_a"), (Flag.SPLAT2, "splat_b"), _WIDE),
        (Function.COPY, Function.TABLE, Function.ADD, Function.SUBTRACT, Function.MULTIPLY),
    ),
    Spec(
        Opcode.POOL,
        Engine.ACTIVATION,
        "The largest or the mean of a window of rows around each step of a walk.",
        (
            _FUNCTION,
            *_walk("ub", "a", "first row of the first window"),
            OperandSpec("window_outer", "window_outer", "count", "outer steps of the window"),
            OperandSpec("window_inner", "window_inner", "count", "inner steps of the window"),
            OperandSpec("ub2_pitch", "window_pitch", "step", "rows from one outer step of the window to the next", 0),
            OperandSpec("ub2_stride", "window_stride", "step", "rows from one inner step of the window to the next", 1),
            *_walk("dest", "ub", "first output row"),
            _OUTER,
            _INNER,
        ),
        (_WIDE,),
        (Function.MAX, Function.AVERAGE),
    ),
    Spec(
        Opcode.SET_CONFIGURATION,
        Engine.ACTIVATION,
        "Makes a parameter block the one that activate, vector and pool use.",
        (OperandSpec("index", "block", "block", "parameter block"),),
    ),
    Spec(
        Opcode.SYNCHRONIZE,
        Engine.CONTROL,
        "The engine's next instruction waits until the named engines have finished all that stands before this.",
        (OperandSpec("index", "engine", "engine", "engine that waits"), OperandSpec("engines", "wait", "engines", "engines to wait for")),
    ),
    Spec(Opcode.SYNCHRONIZE_HOST, Engine.CONTROL, "Every engine waits for the host.", ()),
    Spec(
        Opcode.INTERRUPT_HOST,
        Engine.HOST,
        "The host runs one of its steps: it reads output ports, computes, and fills input ports. The last interrupt, numbered after all "
        "steps, says that all outputs are there.",
        (OperandSpec("index", "step", "host step", "number of the host step, from 0", 0),),
    ),
    Spec(Opcode.DEBUG_TAG, Engine.CONTROL, "Leaves a number in the trace.", (OperandSpec("index", "tag", "tag", "number"),)),
    Spec(Opcode.HALT, Engine.CONTROL, "The end of the program.", ()),
)

SPECS: Mapping[Opcode, Spec] = MappingProxyType({spec.opcode: spec for spec in _ALL})
ENGINE_OF = np.array([SPECS[opcode].engine for opcode in Opcode], np.uint8)
"""The engine of each opcode, for whole columns at once."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A typed view for reading one record."""

    opcode: Opcode
    flags: Flag
    values: Mapping[str, int]

    @classmethod
    def of(cls, record: Any) -> Instruction:
        opcode = Opcode(int(record["opcode"]))
        fields = (operand.field for operand in SPECS[opcode].operands)
        return cls(opcode, Flag(int(record["flags"])), {field: int(record[field]) for field in fields})

    def __getitem__(self, field: str) -> int:
        return self.values[field]


def record(opcode: Opcode, flags: int = 0, **fields: int) -> Any:
    """One record; operands left out get their default. For tests and small programs; large ones fill columns."""
    row = np.zeros((), RECORD)
    row["opcode"], row["flags"] = opcode, flags
    operands = SPECS[opcode].operands_for(fields.get("function", 0))
    for operand in operands:
        value = fields.pop(operand.field, operand.default)
        if value is None:
            raise TypeError(f"{opcode.mnemonic} needs {operand.field}")
        row[operand.field] = value
    if any(fields.values()):
        raise TypeError(f"{opcode.mnemonic} has no {', '.join(fields)}")
    if any(operand.field == "inner" for operand in operands):
        row["outer"] = max(1, int(row["outer"]))
    return row
