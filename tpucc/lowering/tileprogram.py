"""The tile program: machine instructions whose rows are still rows of virtual buffers.

It is the machine's record with the addresses left open: `ub`, `ub2` and `dest` are rows inside a virtual buffer, `acc` a row inside an
accumulator group, and the tile that a multiply switches to is still its own operand. Scheduling adds addresses, weight
prefetch and synchronisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tpucc.isa.effects import Instruction, Instructions
from tpucc.isa.listing.instructions import instruction_texts
from tpucc.isa.listing.labels import Labels
from tpucc.isa.listing.words import label_text
from tpucc.isa.program import DeviceProgram, HostBuffer, Program, bare_program
from tpucc.machine.instruction import MAXIMUM, RECORD, OperandSpec, Records, Spec
from tpucc.machines.v1 import SPECS, V1, Flag, Place
from tpucc.numerics import Int64

TILE_RECORD = np.dtype(
    [
        *((name, RECORD.fields[name][0]) for name in RECORD.names),  # type: ignore[union-attr,index]
        ("ub_buffer", "<i4"),
        ("ub2_buffer", "<i4"),
        ("dest_buffer", "<i4"),
        ("group", "<i4"),
        ("layer", "<u4"),
    ]
)
"""A machine record, then the virtual buffers that `ub`, `ub2` and `dest` are rows of, and the accumulator group of `acc` (-1: none).

In a `matrix_multiply` or `convolve` with the flag `switch`, `index` is the weight tile to switch to; there are no `read_weights`, no
`synchronize` and no `halt` yet.
"""


MULTIPLIES = tuple(opcode for opcode, spec in SPECS.items() if spec.reads & Place.TILE)
NO_TILE = MAXIMUM["index"]
_TILE = OperandSpec("index", "tile", "tile", "weight tile to switch to", NO_TILE)


@dataclass(frozen=True, slots=True)
class VirtualBuffer:
    """Rows that the unified buffer holds together: one column block of one tensor, for one part of the batch.

    `home` is the index of the host buffer that holds the same rows from the start (an input or constant), or -1. A buffer with a home can
    be dropped and read again; a buffer without one must be spilled.
    """

    name: str
    rows: int
    layer: int
    home: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class TileProgram(DeviceProgram):
    """Tile instructions (`TILE_RECORD`) in program order, with the constants and the description of their surroundings.

    As a sequence it has each instruction as an `Instruction`, in whose rows all buffers lie one after the other, and so do all accumulator
    groups.
    """

    buffers: tuple[VirtualBuffer, ...]
    groups: tuple[int, ...]
    """The rows of each accumulator group."""

    def __len__(self) -> int:
        return len(self.instructions)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._listing)

    def __getitem__(self, index: int) -> Instruction:
        return self._listing[index]

    @cached_property
    def _listing(self) -> Instructions:
        layer, names = self.instructions["layer"].astype(np.int64), [layer.name for layer in self.layers]
        return Instructions(flat(self), layer, names, lambda index: self._lines[index])

    @cached_property
    def _lines(self) -> list[str]:
        return tile_lines(self, self.instructions)


def tile_operands(spec: Spec, function: int) -> Sequence[OperandSpec]:
    """The operands of tile instructions: the machine's, and the tile of a multiply that switches."""
    operands = spec.operands_for(function)
    return (*operands, _TILE) if spec.opcode in MULTIPLIES else operands


class Named(Protocol):
    """The source of the rows' names: a tile program, or the layout of one."""

    @property
    def buffers(self) -> Sequence[VirtualBuffer]: ...

    @property
    def host(self) -> Sequence[HostBuffer]: ...


def tile_lines(tiles: Named, instructions: Records) -> list[str]:
    """One line for each of `instructions`, which are some of the program's and well formed."""
    shown = instructions.copy()
    stays = np.isin(shown["opcode"], MULTIPLIES) & ((shown["flags"] & Flag.SWITCH) == 0)
    shown["index"][stays] = NO_TILE
    return instruction_texts(V1, shown, tile_operands, _Texts(tiles, shown))


class _Texts:
    """Shows rows by the names of their buffers, accumulator groups and host buffers."""

    def __init__(self, tiles: Named, instructions: Records) -> None:
        self._names = [buffer.name for buffer in tiles.buffers]
        self._instructions = instructions
        self._machine = Labels(V1, tiles.host, ()).texts

    def __call__(self, operand: OperandSpec, indices: Int64, values: Int64) -> list[str]:
        if operand.space == "ub":
            buffers = self._instructions[f"{operand.field}_buffer"][indices].tolist()
            return [label_text(self._names[buffer], row) for buffer, row in zip(buffers, values.tolist(), strict=True)]
        if operand.space == "acc":
            groups = self._instructions["group"][indices].tolist()
            return [label_text(f"g{group}", row) for group, row in zip(groups, values.tolist(), strict=True)]
        return self._machine(operand, indices, values)


def flat(tiles: TileProgram) -> Records:
    """The instructions with all buffers one after the other in one memory, and all groups in another."""
    code = tiles.instructions.copy()
    bases = np.append(0, np.cumsum([buffer.rows for buffer in tiles.buffers], dtype=np.int64))
    for rows in ("ub", "ub2", "dest"):
        buffer = code[f"{rows}_buffer"]
        code[rows] += np.where(buffer >= 0, bases[buffer], 0).astype(np.uint32)
    groups = np.append(0, np.cumsum(np.array(tiles.groups, np.int64)))
    code["acc"] += np.where(code["group"] >= 0, groups[code["group"]], 0).astype(np.uint32)
    return code


def surrounding_program(tiles: TileProgram) -> Program:
    """The machine program with a tile program's surroundings and no instructions: to be printed, checked, or completed."""
    return bare_program(**_surroundings(tiles))


def tile_program(program: Program, instructions: Records, buffers: tuple[VirtualBuffer, ...], groups: tuple[int, ...]) -> TileProgram:
    """The tile program whose `surrounding_program` is `program`."""
    return TileProgram(**_surroundings(program), instructions=instructions, buffers=buffers, groups=groups)


def _surroundings(program: DeviceProgram) -> dict[str, Any]:
    """The fields that tile programs and machine programs share, without the instructions."""
    return {part.name: getattr(program, part.name) for part in fields(DeviceProgram) if part.name != "instructions"}
