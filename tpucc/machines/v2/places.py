"""The parts that v2's instructions name: its engines, the places that they read and write, and the bits of their flags."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from types import MappingProxyType

from tpucc.machine.instruction import FlagSpec, one_row_each


class Engine(IntEnum):
    """The engines: units that work at the same time, each on its own instructions in order; and the number of instructions without a
    unit."""

    MEMORY = 0
    """Transfers between HBM and vector memory."""
    WEIGHTS = 1
    """Pushes of tiles from vector memory to the matrix unit."""
    MATRIX = 2
    VECTOR = 3
    """Expressions, element by element."""
    LANES = 4
    """What crosses lanes: transposes, sums of lanes, moves to other lanes."""
    LINKS = 5
    """The exchange with other cores."""
    CONTROL = 6
    """Instructions that no unit executes: synchronize, halt."""

    def __str__(self) -> str:
        """`matrix`, as listings name it."""
        return self.name.lower()


class Place(IntFlag):
    """A place that an instruction reads or writes: rows that its operands name, or a part of the machine's state."""

    A = 1
    """Rows of vector memory that a walk visits, from the operand `a` on: the first source of an expression."""
    B = 2
    """The same from the operand `b` on: the second source."""
    C = 4
    """Rows of vector memory, one after the other, from the operand `c` on: the third source."""
    ROWS = 8
    """Rows of vector memory, one after the other, from the operand `a` on: those that stream, are pushed, stored or reduced."""
    BLOCK = 16
    """Rows of vector memory of which each row of the result has a lane: a block that is turned."""
    SUMS = 32
    """Rows of vector memory that sums are added to and written to."""
    Y = 64
    """Rows of vector memory that are written, from the operand `y` on."""
    OLD = 128
    """The same rows, where a part of their lanes is kept."""
    HBM = 256
    """Rows of HBM, from the operand `hbm` on."""
    FIFO = 512
    """The queue of tiles: reading takes its oldest tile into use, writing pushes one."""
    TILE = 1024
    """The tile in use."""
    EXPRESSION = 2048
    """The expression `index` of the program."""
    CORES = 4096
    """The same rows of all other cores."""
    TABLE = 8192
    """Rows of HBM, from the operand `hbm` on, of which indices choose some."""
    INDICES = 16384
    """Rows of vector memory, one after the other, from the operand `indices` on, with an index each."""


class Flag(IntFlag):
    """Bits of the record's `flags`. `FLAGS` says what each of them means."""

    SWITCH = 1
    ACCUMULATE = 2
    HALF = 4
    TURNED = 8
    SPLAT_A = 16
    SPLAT_B = 32
    SPLAT_C = 64
    CLEAR = 128


FLAGS = one_row_each(
    "FLAGS (tpucc/machines/v2/places.py)",
    Flag,
    (
        FlagSpec(Flag.SWITCH, "switch", "The tile that was pushed next becomes the tile in use.", reads=Place.FIFO),
        FlagSpec(Flag.ACCUMULATE, "accumulate", "Adds to the rows of sums instead of overwriting them.", reads=Place.SUMS),
        FlagSpec(Flag.HALF, "half", "HBM holds the upper halves of the values, as bfloat16.", is_half=True),
        FlagSpec(Flag.TURNED, "turned", "The tile is the transposed block."),
        FlagSpec(Flag.SPLAT_A, "splat_a", "Lane 0 of source a stands for all its lanes.", of=Place.A),
        FlagSpec(Flag.SPLAT_B, "splat_b", "Lane 0 of source b stands for all its lanes.", of=Place.B),
        FlagSpec(Flag.SPLAT_C, "splat_c", "Lane 0 of source c stands for all its lanes.", of=Place.C),
        FlagSpec(Flag.CLEAR, "clear", "The other lanes of the result become 0 instead of staying as they are."),
    ),
    lambda row: Flag(row.flag),
)


def flag_rows(flags: Flag) -> Mapping[IntFlag, FlagSpec]:
    """The rows of an instruction's flags."""
    return MappingProxyType({flag: FLAGS[flag] for flag in flags})
