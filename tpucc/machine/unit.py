"""The units of a machine, which work at the same time, and what instructions cost them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

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
    """The units by which the cycles of a program are accounted for. The unit that `computes` waits for the unit that `finishes` its
    results, or for the unit that `supplies` its inputs. A unit that does several of these is named for each."""

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
