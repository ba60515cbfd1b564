"""The core of TPU v3: v2's, with a second matrix unit and its own unit that pushes tiles.

The second pair's instructions are `push_weights_2` and `matrix_multiply_2`. Tiles stand in one queue of two places: each multiply that
switches takes the tile that was pushed next, whichever unit it is on, and that stays the tile in use of its unit.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from functools import partial

from tpucc.machine.instruction import Spec
from tpucc.machine.parts import Unit
from tpucc.machines.v2 import machine
from tpucc.machines.v2.instructions import Opcode as First
from tpucc.machines.v2.machine import V2


class Engine(IntEnum):
    """The engines of v2 with their numbers, and the second pair."""

    MEMORY = 0
    WEIGHTS = 1
    MATRIX = 2
    VECTOR = 3
    LANES = 4
    LINKS = 5
    WEIGHTS_2 = 6
    MATRIX_2 = 7
    CONTROL = 8

    def __str__(self) -> str:
        return self.name.lower()


class Opcode(IntEnum):
    """The instructions of the second pair. Others have v2's opcodes."""

    PUSH_WEIGHTS_2 = 16
    MATRIX_MULTIPLY_2 = 17


SECOND = {First.PUSH_WEIGHTS: Opcode.PUSH_WEIGHTS_2, First.MATRIX_MULTIPLY: Opcode.MATRIX_MULTIPLY_2}
"""The second pair's instruction for each of the first one's."""


def _instructions() -> tuple[Spec, ...]:
    """v2's instructions with the engines of this machine, and those of the second pair."""
    kept = (replace(spec, engine=Engine[spec.engine.name]) for spec in V2.instructions)
    pair = (replace(V2.by_opcode[old], opcode=new, engine=_second(V2.by_opcode[old].engine)) for old, new in SECOND.items())
    return (*kept, *pair)


def _second(engine: IntEnum) -> Engine:
    return Engine[f"{engine.name}_2"]


def _units() -> tuple[Unit, ...]:
    kept = (replace(unit, engine=Engine[unit.engine.name]) for unit in V2.units)
    names = {Engine.WEIGHTS: "the push of the second unit's tiles", Engine.MATRIX: "the second matrix unit"}
    return (*kept, *(replace(V2.units[old], engine=_second(old), title=title) for old, title in names.items()))


assert V2.queue is not None
V3 = replace(
    V2,
    name="v3",
    units=_units(),
    instructions=_instructions(),
    queue=replace(V2.queue, depth=lambda target: 2),
    obstacle=partial(machine.obstacle, units=2),
)
MACHINE = V3
