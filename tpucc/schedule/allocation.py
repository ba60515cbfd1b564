"""The allocation of a program's buffers: which rows of the machine's memory of values each buffer has, and when."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.isa.program import HostBuffer
from tpucc.machine.record import Records


@dataclass(frozen=True, slots=True)
class Stay:
    """A buffer has the memory's rows from `start`, from instruction `first` to instruction `last`, both inclusive."""

    buffer: int
    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Tile instructions (`TILE_RECORD`) whose rows of buffers are rows of the machine's memory.

    Spilling may have added transfers, and host buffers of kind "scratch" to `host`. `lower_bound` is the largest sum of rows alive at one
    time.
    """

    instructions: Records
    stays: tuple[Stay, ...]
    lower_bound: int
    host: tuple[HostBuffer, ...]
    notes: tuple[str, ...] = ()
