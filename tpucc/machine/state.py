"""The state of a machine besides its memories: a queue of entries, and a register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Protocol

import numpy as np

from tpucc.machine.record import Records
from tpucc.numerics import Int64
from tpucc.target import Target


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue between two units, with a shadow: one unit asks for entries, the other takes them into use in the same order.

    An instruction that writes `place` asks for the entry `index` of the program's tiles; one that reads `place` takes the oldest entry into
    use, and one that reads `used` computes with the entry in use, which is the `operand` of its `compute`. An instruction that writes
    `stored` writes the contents of the entry `index`, rows of a memory. An entry waits in one of `depth` places, is shifted into the shadow
    in `shift` cycles as soon as the entry before it has been taken into use, and then leaves its place.

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
    depths: Callable[[Records], Int64] | None = None


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of programs. An instruction that reads `place` computes the expression `index` of its program, which is the `operand`
    of its `compute`.

    `parse` makes it of its text, and raises `ValueError` in words that follow "the expression". A `Loop` says what the verifier and the
    clock ask of it.
    """

    place: IntFlag
    operand: str
    parse: Callable[[str], Loop]


class Loop(Protocol):
    """An expression: the operands of `compute` that it reads, whether its result has been rounded to bfloat16, and the bundles of
    operations for each register of rows."""

    @property
    def sources(self) -> tuple[str, ...]: ...

    @property
    def is_rounded(self) -> bool: ...

    def bundles(self, target: Target) -> int: ...


@dataclass(frozen=True, slots=True)
class Register:
    """The parameter block in use. An instruction that writes `place` chooses the block `index` of the program; one that reads it computes
    with the block, which is the `operand` of its `compute`. `dtype` gives the block's fields by the number of lanes. A field that a text
    leaves out is 0, or has its value in `defaults`."""

    place: IntFlag
    operand: str
    dtype: Callable[[int], np.dtype[Any]]
    defaults: Mapping[str, float] = field(default_factory=dict)
