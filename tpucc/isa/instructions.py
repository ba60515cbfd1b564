"""The instruction set: one row for each mnemonic, with all facts about it.

`SPECS` is the single place for it: an instruction's fields and flags, the engine that executes it, what it reads and writes, its
meaning, and the cycles that it takes. The assembler, the verifier, both simulators, the clock, the scheduler and the reference in the
documentation ask the row. The functions of `vector` and `pool` have rows of the same kind in `FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Literal

import numpy as np

from tpucc.isa.cycles import Cycles, host_step, no_time, one_a_row, one_cycle, tile_fetch, transfer
from tpucc.isa.functions import FUNCTIONS, Function, Meaning, Operands, activate, functions, matrix_product, unsigned
from tpucc.isa.record import (
    FLAGS,
    FORMAT_FLAGS,
    NO_FLAGS,
    NOWHERE,
    OPERAND_OF,
    RECORD,
    ROWS,
    UNITS,
    Engine,
    Flag,
    Place,
    Records,
    one_row_each,
)
from tpucc.isa.sentences import Sentence, activates, brings, computes, multiplies, stores_tile, synchronises, takes
from tpucc.numerics import DeviceInts, Int32

__all__ = ["ENGINE_OF", "FUNCTIONS", "RECORD", "SPECS", "UNITS", "Engine", "Flag", "Function", "Instruction", "Opcode", "OperandSpec"]
__all__ += ["Place", "Records", "Space", "Spec", "activated", "multiplied", "record"]


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
    WRITE_WEIGHTS = 15

    @property
    def mnemonic(self) -> str:
        return self.name.lower()


Space = Literal["ub", "acc", "host", "count", "step", "tile", "block", "host step", "engine", "engines", "function", "tag"]
"""The meaning of a field's value: a row of the unified buffer, of the accumulators or of host memory, a count, a step between rows, the
number of a weight tile, a parameter block or a host step, one engine, several, a function, or a plain number."""


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """A field as the assembler shows it: the record's field, its key in the text, what it means, and the value it may be left out at.

    An operand `of` a place is there only where the instruction's function reads that place.
    """

    field: str
    key: str
    space: Space
    meaning: str
    default: int | None = None
    of: Place = NOWHERE


Waits = Callable[[int, int], tuple[tuple[int, int], ...]]
"""From the fields `index` and `engines`: each engine that waits, and the engines that it waits for (bit 1 << e stands for engine e)."""


@dataclass(frozen=True, eq=False, slots=True)
class Spec:
    """One mnemonic. `operands` stand in the order of the text.

    `reads` and `writes` hold for every instruction of it; flags and functions add what they read. Its `meaning` makes of the rows that it
    reads those that it writes; an instruction with `functions` has theirs. It occupies its engine for `cycles`, and makes engines wait
    (`waits`). Its `sentence` says what one of them does. Raises `TypeError` when these don't fit each other.
    """

    opcode: Opcode
    engine: Engine
    summary: str
    cycles: Cycles
    sentence: Sentence
    operands: tuple[OperandSpec, ...] = ()
    flags: Flag = NO_FLAGS
    functions: tuple[Function, ...] = ()
    reads: Place = NOWHERE
    writes: Place = NOWHERE
    meaning: Meaning | None = None
    waits: Waits = lambda index, engines: ()

    def __post_init__(self) -> None:
        fields = {operand.field for operand in self.operands}
        missing = [field for place, field in OPERAND_OF.items() if self._touched & place and field not in fields]
        if missing:
            raise TypeError(f"{self.opcode.mnemonic} reads or writes rows that no operand names: {', '.join(missing)}")
        if (self.meaning is not None or bool(self.functions)) is not bool(self.writes & ROWS):
            raise TypeError(f"{self.opcode.mnemonic} writes rows without a meaning, or has a meaning and writes none")

    def reads_for(self, function: int, flags: int = 0) -> Place:
        """The places that an instruction with this function and these flags reads; for an unknown function, those that any function
        reads."""
        return _reads(self, function, flags)

    def operands_for(self, function: int) -> tuple[OperandSpec, ...]:
        """The operands in use: a function with one source has none of the second."""
        return _operands(self, function)

    def flags_for(self, function: int) -> tuple[tuple[Flag, str], ...]:
        """The flags that mean something, with their names: without a second source there is no `splat_b`."""
        reads = self.reads_for(function)
        known = (FLAGS[flag] for flag in self.flags)
        return tuple((row.flag, row.name) for row in known if not row.of or row.of & reads)

    def meaning_of(self, function: int) -> Meaning | None:
        """The meaning of an instruction with this function; None if it writes no rows."""
        return FUNCTIONS[Function(function)].meaning if self.functions else self.meaning

    @property
    def _touched(self) -> Place:
        """All places that some instruction of this mnemonic reads or writes."""
        return self.reads_for(-1, int(self.flags)) | self.writes


@cache
def _reads(spec: Spec, function: int, flags: int) -> Place:
    places = spec.reads
    for each in spec.functions:
        if each == function or function not in spec.functions:
            places |= FUNCTIONS[each].reads
    for flag in spec.flags:
        if flags & flag:
            places |= FLAGS[flag].reads
    return places


@cache
def _operands(spec: Spec, function: int) -> tuple[OperandSpec, ...]:
    reads = _reads(spec, function, 0)
    return tuple(operand for operand in spec.operands if not operand.of or operand.of & reads)


_HOST = OperandSpec("host", "host", "host", "first row in host memory")
_ROWS = OperandSpec("inner", "rows", "count", "how many rows, one after the other")


def _walk(field: str, key: str, meaning: str, of: Place = NOWHERE) -> tuple[OperandSpec, ...]:
    return (
        OperandSpec(field, key, "ub", meaning, of=of),
        OperandSpec(f"{field}_pitch", f"{key}_pitch", "step", f"rows from one outer step to the next of {key}", 0, of),
        OperandSpec(f"{field}_stride", f"{key}_stride", "step", f"rows from one inner step to the next of {key}; 0 repeats a row", 1, of),
    )


_OUTER = OperandSpec("outer", "outer", "count", "outer steps of the walks", 1)
_INNER = OperandSpec("inner", "inner", "count", "inner steps of the walks")
_ACC = OperandSpec("acc", "acc", "acc", "first accumulator row; the others follow it")
_FUNCTION = OperandSpec("function", "function", "function", "what is computed")
_MATRIX_FLAGS = Flag.SWITCH | Flag.ACCUMULATE | Flag.UNSIGNED | FORMAT_FLAGS


def moved(x: Operands) -> DeviceInts:
    """The rows as they are."""
    return x.a


def multiplied(x: Operands) -> Int32:
    """The rows times the tile in use, added to the accumulators that are read."""
    return x.sums + matrix_product(unsigned(x.a) if Flag.UNSIGNED in x.flags else x.a, x.tile)


def activated(x: Operands) -> DeviceInts:
    """The sums as values again, as the parameter block says."""
    return activate(x.sums, x.block, x.format)


SPECS: Mapping[Opcode, Spec] = one_row_each(
    "SPECS (tpucc/isa/instructions.py)",
    Opcode,
    (
        Spec(Opcode.NOP, Engine.CONTROL, "Does nothing.", no_time, lambda _: "does nothing"),
        Spec(
            Opcode.READ_HOST_MEMORY,
            Engine.HOST,
            "Host memory to unified buffer.",
            transfer,
            brings,
            (_HOST, OperandSpec("dest", "ub", "ub", "first row in the unified buffer"), _ROWS),
            reads=Place.HOST,
            writes=Place.DEST,
            meaning=moved,
        ),
        Spec(
            Opcode.WRITE_HOST_MEMORY,
            Engine.HOST,
            "Unified buffer to host memory.",
            transfer,
            takes,
            (OperandSpec("ub", "ub", "ub", "first row in the unified buffer"), _HOST, _ROWS),
            reads=Place.UB,
            writes=Place.HOST,
            meaning=moved,
        ),
        Spec(
            Opcode.READ_WEIGHTS,
            Engine.WEIGHTS,
            "Asks for a weight tile; retires at once, and the tile arrives in the FIFO.",
            tile_fetch,
            lambda x: f"asks for tile {x['index']:,} of weight memory, which will come into the FIFO",
            (OperandSpec("index", "tile", "tile", "tile in weight memory"),),
            writes=Place.FIFO,
        ),
        Spec(
            Opcode.WRITE_WEIGHTS,
            Engine.HOST,
            "Host memory to the first rows of a tile in weight memory, whose other rows become zero.",
            transfer,
            stores_tile,
            (_HOST, OperandSpec("index", "tile", "tile", "tile in weight memory, one of those without weights of their own"), _ROWS),
            reads=Place.HOST,
            writes=Place.MEMORY,
        ),
        Spec(
            Opcode.MATRIX_MULTIPLY,
            Engine.MATRIX,
            "Rows of the unified buffer times the tile in use, into the accumulators.",
            one_a_row,
            multiplies,
            (OperandSpec("ub", "ub", "ub", "first input row"), _ACC, _ROWS),
            _MATRIX_FLAGS,
            reads=Place.UB | Place.TILE,
            writes=Place.ACC,
            meaning=multiplied,
        ),
        Spec(
            Opcode.CONVOLVE,
            Engine.MATRIX,
            "A matrix multiply over a two-dimensional walk of rows: one tap of a convolution.",
            one_a_row,
            multiplies,
            (*_walk("ub", "ub", "first input row"), _ACC, _OUTER, _INNER),
            _MATRIX_FLAGS,
            reads=Place.UB | Place.TILE,
            writes=Place.ACC,
            meaning=multiplied,
        ),
        Spec(
            Opcode.ACTIVATE,
            Engine.ACTIVATION,
            "Accumulators plus bias, requantised, clamped, through the table if there is one, into the unified buffer.",
            one_a_row,
            activates,
            (_ACC, *_walk("dest", "ub", "first output row"), _OUTER, _INNER),
            FORMAT_FLAGS,
            reads=Place.ACC | Place.BLOCK,
            writes=Place.DEST,
            meaning=activated,
        ),
        Spec(
            Opcode.VECTOR,
            Engine.ACTIVATION,
            "Element by element in the unified buffer.",
            one_a_row,
            computes,
            (
                _FUNCTION,
                *_walk("ub", "a", "first source row"),
                *_walk("ub2", "b", "first row of the second source, of a function of two rows", Place.UB2),
                *_walk("dest", "ub", "first output row"),
                _OUTER,
                _INNER,
            ),
            Flag.SPLAT | Flag.SPLAT2 | FORMAT_FLAGS,
            functions(windows=False),
            writes=Place.DEST,
        ),
        Spec(
            Opcode.POOL,
            Engine.ACTIVATION,
            "The largest, the mean or a weighted sum of a window of rows around each step of a walk.",
            one_a_row,
            computes,
            (
                _FUNCTION,
                *_walk("ub", "a", "first row of the first window"),
                OperandSpec("window_outer", "window_outer", "count", "outer steps of the window"),
                OperandSpec("window_inner", "window_inner", "count", "inner steps of the window"),
                OperandSpec("ub2_pitch", "window_pitch", "step", "rows from one outer step of the window to the next", 0),
                OperandSpec("ub2_stride", "window_stride", "step", "rows from one inner step of the window to the next", 1),
                OperandSpec("ub2", "weights", "ub", "first row of the weights, one for each row of the window", of=Place.KERNEL),
                *_walk("dest", "ub", "first output row"),
                _OUTER,
                _INNER,
            ),
            FORMAT_FLAGS,
            functions(windows=True),
            writes=Place.DEST,
        ),
        Spec(
            Opcode.SET_CONFIGURATION,
            Engine.ACTIVATION,
            "Makes a parameter block the one that activate, vector and pool use.",
            one_cycle,
            lambda x: f"makes parameter block {x['index']:,} the one in use",
            (OperandSpec("index", "block", "block", "parameter block"),),
            writes=Place.BLOCK,
        ),
        Spec(
            Opcode.SYNCHRONIZE,
            Engine.CONTROL,
            "The engine's next instruction waits until the named engines have finished all that stands before this.",
            no_time,
            synchronises,
            (
                OperandSpec("index", "engine", "engine", "engine that waits"),
                OperandSpec("engines", "wait", "engines", "engines to wait for"),
            ),
            waits=lambda index, engines: ((index, engines),),
        ),
        Spec(
            Opcode.SYNCHRONIZE_HOST,
            Engine.CONTROL,
            "Every engine waits for the host.",
            no_time,
            lambda _: "lets every unit wait for the host",
            waits=lambda index, engines: tuple((unit.value, 1 << Engine.HOST) for unit in UNITS if unit is not Engine.HOST),
        ),
        Spec(
            Opcode.INTERRUPT_HOST,
            Engine.HOST,
            "The host runs one of its steps: it reads output ports, computes, and fills input ports. The last interrupt, numbered after "
            "all steps, says that all outputs are there.",
            host_step,
            lambda x: f"stops for step {x['index']:,} of the host",
            (OperandSpec("index", "step", "host step", "number of the host step, from 0", 0),),
            reads=Place.PORTS,
            writes=Place.PORTS,
        ),
        Spec(
            Opcode.DEBUG_TAG,
            Engine.CONTROL,
            "Leaves a number in the trace.",
            no_time,
            lambda _: "marks a place, and does nothing",
            (OperandSpec("index", "tag", "tag", "number"),),
        ),
        Spec(Opcode.HALT, Engine.CONTROL, "The end of the program.", no_time, lambda _: "ends the program"),
    ),
    lambda row: row.opcode,
)
ENGINE_OF = np.full(256, Engine.CONTROL, np.uint8)
"""The engine of each opcode, for whole columns at once."""
ENGINE_OF[list(SPECS)] = [spec.engine for spec in SPECS.values()]


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

    @property
    def reads(self) -> Place:
        return SPECS[self.opcode].reads_for(self.values.get("function", 0), self.flags)

    @property
    def writes(self) -> Place:
        return SPECS[self.opcode].writes

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    def __str__(self) -> str:
        """What it does, in words: `multiplies rows 0 to 399 of the unified buffer by the tile in use, into accumulators 0 to 399`."""
        return SPECS[self.opcode].sentence(self)


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
