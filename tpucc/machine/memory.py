"""The memories of a machine, and the rows in them that instructions read and write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

import numpy as np

from tpucc.target import Target

NOWHERE: Any = 0
"""No place: the default of the places that an instruction reads and writes."""


class Contents(Enum):
    """What the rows of a memory hold. It decides which rules of the verifier are about the memory."""

    VALUES = "values"
    """Values. A program may say which buffer lies in which rows when: its memory map."""
    SUMS = "sums"
    """Sums: begun by a write, added to by writes that read, and used by reads, in this order."""
    BUFFERS = "buffers"
    """Buffers that the program names: inputs and constants, which are there before it starts, outputs, and scratch rows."""


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
