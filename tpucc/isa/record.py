"""The record that every instruction is: its fields, the bits of its flags, the engines, and the places that instructions read and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Member = TypeVar("Member", bound=Enum)
Row = TypeVar("Row")


def one_row_each(name: str, members: type[Member], rows: Sequence[Row], member_of: Callable[[Row], Member]) -> Mapping[Member, Row]:
    """The rows by their members. `name` is what the table is called where it is written.

    Raises `TypeError` when a member has no row, or two.
    """
    table: dict[Member, Row] = {}
    for row in rows:
        member = member_of(row)
        if member in table:
            raise TypeError(f"{members.__name__}.{member.name} has two rows in {name}: it can have one meaning only")
        table[member] = row
    missing = [f"{members.__name__}.{member.name}" for member in members if member not in table]
    if missing:
        raise TypeError(f"{', '.join(missing)} has no row in {name}: nothing would know what it means")
    return MappingProxyType(table)


Records = npt.NDArray[np.void]
"""Instructions: a structured array of `RECORD`."""

RECORD = np.dtype(
    [(name, "u1") for name in ("opcode", "flags", "function", "engines")]
    + [(name, "<u4") for name in ("host", "ub", "ub2", "dest", "acc", "index", "outer", "inner")]
    + [(f"{walk}_{step}", "<u4") for walk in ("ub", "ub2", "dest") for step in ("pitch", "stride")]
    + [(f"window_{walk}", "<u2") for walk in ("outer", "inner")]
)
"""64 bytes, little endian. Fields that an instruction doesn't use are zero; `outer` is 1 where `inner` is used and `outer` isn't.

`ub`, `ub2`, `dest` are unified-buffer rows, `acc` is an accumulator row, `host` a row of host memory; `index` is a weight tile, a
parameter block, an engine, a host step or a tag. Rows are walked in two dimensions: row (o, i) of a walk lies at
`start + o * pitch + i * stride` for o below `outer` and i below `inner`. The accumulators' walk is always
dense: row `acc + o * inner + i`. With the flag `wide`, rows of the unified buffer are those of the low bytes of 16-bit values, and the high
bytes lie in the row after each; the rows that `matrix_multiply` finds one after the other are then two apart.
"""


class Engine(IntEnum):
    """The units that work at the same time, each on its own instructions in order."""

    HOST = 0
    """Transfers between host memory and the unified buffer, both ways, or to weight memory, and what the host computes between two."""
    WEIGHTS = 1
    """Fetches of tiles from weight memory to the FIFO."""
    MATRIX = 2
    ACTIVATION = 3
    """Activate, vector, pool and their configuration."""
    CONTROL = 4
    """Instructions that no unit executes: nop, synchronize, tags, halt."""

    def __str__(self) -> str:
        """`matrix`, as listings name it."""
        return self.name.lower()


UNITS = tuple(engine for engine in Engine if engine is not Engine.CONTROL)
"""Engines that execute something, and so can wait or be waited for."""


class Place(IntFlag):
    """A place that an instruction reads or writes: rows that its operands name, or a part of the machine's state."""

    UB = 1
    """Rows of the unified buffer, from the operand `ub` on."""
    UB2 = 2
    """Rows of the unified buffer, from the operand `ub2` on."""
    WINDOWS = 4
    """Windows of rows of the unified buffer, the first of them at the operand `ub`."""
    DEST = 8
    """Rows of the unified buffer, from the operand `dest` on."""
    ACC = 16
    """Rows of the accumulators, from the operand `acc` on."""
    HOST = 32
    """Rows of host memory, from the operand `host` on."""
    FIFO = 64
    """The weight FIFO: reading takes its oldest tile into use, writing asks for the tile `index`."""
    TILE = 128
    """The weight tile in use."""
    BLOCK = 256
    """The parameter block in use; writing chooses the block `index`."""
    PORTS = 512
    """The rows of host memory of the ports of the host step `index`, if there is such a step."""
    MEMORY = 1024
    """The tile `index` of weight memory."""
    KERNEL = 2048
    """Rows of weights in the unified buffer, one for each row of a window, from the operand `ub2` on."""


NOWHERE = Place(0)
OPERAND_OF = {
    Place.UB: "ub",
    Place.UB2: "ub2",
    Place.WINDOWS: "ub",
    Place.KERNEL: "ub2",
    Place.DEST: "dest",
    Place.ACC: "acc",
    Place.HOST: "host",
}
"""The field with the first row of each place that has rows."""
ROWS = Place(sum(OPERAND_OF))


class Flag(IntFlag):
    """Bits of the record's `flags`. `FLAGS` says what each of them means."""

    SWITCH = 1
    ACCUMULATE = 2
    UNSIGNED = 4
    SPLAT = 8
    SPLAT2 = 16
    WIDE = 32


NO_FLAGS = Flag(0)
FORMAT_FLAGS = Flag.WIDE
"""Those that say a number format, together (see `tpucc.isa.formats`)."""


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """A flag: its name in the text, what it means, what it makes the instruction read, and the place without which it says nothing."""

    flag: Flag
    name: str
    meaning: str
    reads: Place = NOWHERE
    of: Place = NOWHERE


FLAGS = one_row_each(
    "FLAGS (tpucc/isa/record.py)",
    Flag,
    (
        FlagSpec(Flag.SWITCH, "switch", "The next tile of the FIFO becomes the tile in use.", reads=Place.FIFO),
        FlagSpec(Flag.ACCUMULATE, "accumulate", "Adds to the accumulators instead of overwriting them.", reads=Place.ACC),
        FlagSpec(Flag.UNSIGNED, "unsigned", "Input bytes are 0…255 instead of -128…127."),
        FlagSpec(Flag.SPLAT, "splat_a", "Lane 0 of the first source stands for all its lanes.", of=Place.UB),
        FlagSpec(Flag.SPLAT2, "splat_b", "Lane 0 of the second source stands for all its lanes.", of=Place.UB2),
        FlagSpec(
            Flag.WIDE,
            "wide",
            "Values have 16 bits: a row of them is two rows of the unified buffer, the low bytes and, after them, the high bytes.",
        ),
    ),
    lambda row: row.flag,
)
