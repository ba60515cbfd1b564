"""One instruction applied to the memories, by its row of `SPECS`: what it reads is loaded, its meaning computed, the result stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tpucc.isa.formats import format_of
from tpucc.isa.functions import Meaning, Operands
from tpucc.isa.instructions import SPECS, Flag, Instruction, Place
from tpucc.isa.program import Program
from tpucc.isa.record import OPERAND_OF
from tpucc.numerics import AnyArray
from tpucc.sim.machine import Machine, Rows, accumulator_rows, host_rows, operand, windows

OPERANDS = {Place.UB: "a", Place.WINDOWS: "a", Place.HOST: "a", Place.UB2: "b", Place.ACC: "sums"}
"""Which of the `Operands` the rows of each place are."""
SPLATS = {Place.UB: Flag.SPLAT, Place.UB2: Flag.SPLAT2}


@dataclass(frozen=True, eq=False, slots=True)
class Applied:
    """An instruction that moves or computes rows, with all that it uses; or several that are the same as one after the other.

    `constants` are the tile and the parameter block, by their names in `Operands`, if it reads them.
    """

    meaning: Meaning
    flags: Flag
    block_index: int
    constants: dict[str, Any]
    reads: tuple[tuple[Place, Rows], ...]
    writes: tuple[Place, Rows]

    def run(self, machine: Machine) -> None:
        """All source rows are read before any row is written."""
        values: dict[str, Any] = {OPERANDS[place]: self._loaded(machine, place, rows) for place, rows in self.reads}
        _store(machine, *self.writes, self.meaning(Operands(self.flags, **values, **self.constants)))

    def _loaded(self, machine: Machine, place: Place, rows: Rows) -> AnyArray:
        """The values of rows; lane 0 alone where it stands for all."""
        if place is Place.ACC:
            return machine.accumulators[rows]
        if place is Place.HOST:
            return machine.host[rows]
        splat = self.flags & SPLATS.get(place, 0)
        return machine.load(rows, format_of(self.flags), slice(0, 1) if splat else slice(None))


def _store(machine: Machine, place: Place, rows: Rows, values: AnyArray) -> None:
    match place:
        case Place.ACC:
            machine.accumulators[rows] = values
        case Place.HOST:
            machine.host[rows] = values
        case Place.DEST:
            machine.store(rows, values)
        case _:
            raise TypeError(f"{place!r} is no place to store rows")


def applied(program: Program, instruction: Instruction, tile: int, block: int) -> Applied | None:
    """What an instruction does to the memories when `tile` and `block` are those in use; None when it moves and computes nothing."""
    reads = instruction.reads
    meaning = SPECS[instruction.opcode].meaning_of(instruction.values.get("function", 0))
    if meaning is None:
        return None
    constants: dict[str, Any] = {}
    if reads & Place.TILE:
        constants["tile"] = program.tiles[tile]
    if reads & Place.BLOCK:
        constants["block"] = program.blocks[block]
    sources = tuple((place, _rows(instruction, place)) for place in OPERANDS if reads & place)
    (written,) = (place for place in OPERAND_OF if instruction.writes & place)
    return Applied(meaning, instruction.flags, block if constants else -1, constants, sources, (written, _rows(instruction, written)))


def _rows(instruction: Instruction, place: Place) -> Rows:
    if place is Place.ACC:
        return accumulator_rows(instruction)
    if place is Place.HOST:
        return host_rows(instruction)
    if place is Place.WINDOWS:
        return windows(instruction)
    return operand(instruction, OPERAND_OF[place])
