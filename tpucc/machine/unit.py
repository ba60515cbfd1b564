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

    The name of its `engine` is its word in listings, `title` its name in sentences. `limit` names the limit of a program that waits for
    this unit, and `done` is the sentence about an instruction of this unit that is waited for. `drain` is the number of cycles after an
    instruction's end until other units see its results.
    """

    engine: IntEnum
    title: str
    limit: str = ""
    done: str = "{title}, whose instruction {{number}} ends in cycle {{end}}"
    drain: Callable[[Target], int] = _nothing

    @property
    def word(self) -> str:
        """`matrix`, as listings name it."""
        return self.engine.name.lower()


@dataclass(frozen=True, slots=True)
class Account:
    """The units whose waits account for idle cycles. The unit that `computes` waits for the unit that `finishes` its results, or for the
    unit that `supplies` its inputs. A unit that does several of these is named for each."""

    computes: IntEnum
    finishes: IntEnum
    supplies: IntEnum


@dataclass(frozen=True, eq=False, slots=True)
class Workload:
    """The amount of work of some instructions: int64 columns of equal length."""

    rows: Int64
    """Rows that are moved or computed."""
    bytes_per_value: Int64
    window: Int64
    """The rows that are read for each row: the rows of a pooling window, else 1."""
    elements: Int64
    """The number of values that the host computes at an interrupt; -1 if it has nothing to do."""
    link_bytes: Int64
    """Bytes that cross the host link, padding included."""
    target: Target
    cores: int
    """The cores that share the host and its link."""

    def of(self, indices: Int64) -> Workload:
        """The work of some of the instructions."""
        columns = self.rows, self.bytes_per_value, self.window, self.elements, self.link_bytes
        rows, size, window, elements, moved = (column[indices] for column in columns)
        return Workload(rows, size, window, elements, moved, self.target, self.cores)


Cycles = Callable[[Workload], Int64 | int]
"""The cycles for which instructions occupy their unit. The first sentence of its docstring stands in the reference of the machine."""


def no_time(work: Workload) -> int:
    """Takes no cycles: no engine executes it."""
    return 0


def one_cycle(work: Workload) -> int:
    """Takes one cycle."""
    return 1


def one_a_row(work: Workload) -> Int64:
    """Takes one cycle for each row of bytes that it reads: two for a row of 16-bit values, and one for each row of a window."""
    return work.rows * work.bytes_per_value * work.window
