"""The state of a machine besides its memories: a queue of entries, and a register."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

import numpy as np

from tpucc.target import Target


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue between two units, with a shadow: one unit asks for entries, the other takes them into use in the same order.

    An instruction that writes `place` asks for the entry `index` of the program's tiles; one that reads `place` takes the oldest entry into
    use, and one that reads `used` computes with the entry in use, which is the `operand` of its `compute`. An instruction that writes
    `stored` writes the contents of the entry `index`, rows of a memory. An entry waits in one of `depth` places, is shifted into the shadow
    in `shift` cycles as soon as the entry before it has been taken into use, and then leaves its place.
    """

    place: IntFlag
    used: IntFlag
    stored: IntFlag
    operand: str
    depth: Callable[[Target], int]
    shift: Callable[[Target], int]


@dataclass(frozen=True, slots=True)
class Register:
    """The parameter block in use. An instruction that writes `place` chooses the block `index` of the program; one that reads it computes
    with the block, which is the `operand` of its `compute`. `dtype` gives the block's fields by the number of lanes. A field that a text
    leaves out is 0, or has its value in `defaults`."""

    place: IntFlag
    operand: str
    dtype: Callable[[int], np.dtype[Any]]
    defaults: Mapping[str, float] = field(default_factory=dict)
