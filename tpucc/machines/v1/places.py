"""The parts that v1's instructions name: its units, the places that they read and write, and the bits of their flags."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from types import MappingProxyType

from tpucc.machine.instruction import FlagSpec, one_row_each


class Engine(IntEnum):
    """The engines: units that work at the same time, each on its own instructions in order; and the number of instructions without a
    unit."""

    HOST = 0
    """Transfers between host memory and the unified buffer, and to weight memory; and the host's steps between them."""
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
"""The engines that are units, which can wait and be waited for."""


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


class Flag(IntFlag):
    """Bits of the record's `flags`. `FLAGS` says what each of them means."""

    SWITCH = 1
    ACCUMULATE = 2
    UNSIGNED = 4
    SPLAT = 8
    SPLAT2 = 16
    WIDE = 32


FORMAT_FLAGS = Flag.WIDE
"""The flags that encode a number format (see `tpucc.machines.v1.formats`)."""


FLAGS = one_row_each(
    "FLAGS (tpucc/machines/v1/places.py)",
    Flag,
    (
        FlagSpec(Flag.SWITCH, "switch", "The next tile of the FIFO becomes the tile in use.", reads=Place.FIFO),
        FlagSpec(Flag.ACCUMULATE, "accumulate", "Adds to the accumulators instead of overwriting them.", reads=Place.ACC),
        FlagSpec(Flag.UNSIGNED, "unsigned", "Input bytes are 0…255 instead of -128…127.", is_unsigned=True),
        FlagSpec(Flag.SPLAT, "splat_a", "Lane 0 of the first source stands for all its lanes.", of=Place.UB),
        FlagSpec(Flag.SPLAT2, "splat_b", "Lane 0 of the second source stands for all its lanes.", of=Place.UB2),
        FlagSpec(
            Flag.WIDE,
            "wide",
            "Values have 16 bits: a row of them is two rows of the unified buffer, the low bytes and, after them, the high bytes.",
        ),
    ),
    lambda row: Flag(row.flag),
)


def flag_rows(flags: Flag) -> Mapping[IntFlag, FlagSpec]:
    """The rows of an instruction's flags."""
    return MappingProxyType({flag: FLAGS[flag] for flag in flags})
