"""v1 with a second matrix unit. Both read the unified buffer, have the same tile in use, and write the same accumulators.

Its multiplies are `matrix_multiply_2` and `convolve_2`. No target for integers has two units, so that no model is compiled for it; lab 7
asks who waits for whom. It has no steps of the host.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from tpucc.machine.instruction import Spec
from tpucc.machine.parts import Unit
from tpucc.machines.v1 import V1
from tpucc.machines.v1 import Opcode as Old


class Engine(IntEnum):
    """The engines of v1 with their numbers, and the second matrix unit."""

    HOST = 0
    WEIGHTS = 1
    MATRIX = 2
    ACTIVATION = 3
    MATRIX_2 = 4
    CONTROL = 5

    def __str__(self) -> str:
        return self.name.lower()


class Opcode(IntEnum):
    """The multiplies of the second matrix unit. Other instructions have v1's opcodes."""

    MATRIX_MULTIPLY_2 = 16
    CONVOLVE_2 = 17


SECOND = {Old.MATRIX_MULTIPLY: Opcode.MATRIX_MULTIPLY_2, Old.CONVOLVE: Opcode.CONVOLVE_2}
"""The second unit's instruction for each of the first one's."""


def _kept() -> tuple[Spec, ...]:
    """v1's instructions, with the engines of this machine."""
    specs = (spec for spec in V1.instructions if spec.opcode not in (Old.SYNCHRONIZE_HOST, Old.INTERRUPT_HOST))
    return tuple(replace(spec, engine=Engine[spec.engine.name]) for spec in specs)


def _second(unit: Unit) -> Unit:
    return replace(unit, engine=Engine.MATRIX_2, title="the second matrix unit")


TWIN = replace(
    V1,
    name="twin",
    units=(*(replace(unit, engine=Engine[unit.engine.name]) for unit in V1.units), _second(V1.units[Engine.MATRIX])),
    instructions=(*_kept(), *(replace(V1.by_opcode[old], opcode=new, engine=Engine.MATRIX_2) for old, new in SECOND.items())),
    obstacle=lambda target: target.obstacle or "has one matrix unit",
)
MACHINE = TWIN
