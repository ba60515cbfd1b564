"""How many rows a fetched tile is used for, of the tiles on the critical path, and how many it could be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.critical import Limit, Part
from tpucc.isa.effects import effects, resolve
from tpucc.isa.program import Program
from tpucc.isa.tilegrid import tile_grid


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows that a fetched tile is used for, of the tiles on the critical path."""

    rows: int
    """Of the tiles that take most of its cycles; 0 where there are none."""
    only: bool
    """Whether there are no others."""
    whole: int
    """The rows of these tiles' layer in one part of the batch. They are more than `rows` where the accumulators don't hold their sums."""
    waits: bool
    """Whether the sums of that layer wait in the accumulators for further tiles, so that these must hold as many rows."""

    @property
    def words(self) -> str:
        return f"{'' if self.only else 'most are '}used for {counted(self.rows, 'row')}"


def tile_rows(program: Program, path: list[Part]) -> TileRows:
    """Of a program with this critical path."""
    touched = effects(program.instructions, program.machine)
    used = np.bincount(np.maximum(np.cumsum(touched.pops) - 1, 0), touched.rows * touched.multiplies).astype(np.int64)
    parts = [part for part in path if part.limit in (Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT)]
    if not parts:
        return TileRows(0, only=True, whole=0, waits=False)
    fetches = np.array([part.instruction for part in parts])
    tiles = np.cumsum(touched.pushes)[fetches] - 1
    rows, kinds = np.unique(used[tiles], return_inverse=True)
    cycles = np.array([part.cycles for part in parts])
    kind = np.bincount(kinds, cycles).argmax()
    own = kinds == kind
    layer = int(np.bincount(program.layer_of[fetches[own]], cycles[own]).argmax())
    most = int(rows[kind])
    waits = bool(tile_grid(program.layers[layer], program.target.mxu).row.max(initial=0) > 0)
    return TileRows(most, only=len(rows) == 1, whole=max(most, _rows_of_a_part(program, layer)), waits=waits)


def _rows_of_a_part(program: Program, layer: int) -> int:
    """The rows that each tile of a layer is used for in one part of the batch, however often it is fetched."""
    touched = effects(program.instructions, program.machine)
    own = program.layer_of == layer
    fetched = set(resolve(program.instructions, touched).tile[own & touched.multiplies].tolist())
    places = sum(tile in fetched for tile, _, _ in program.layers[layer].tile_fills)
    division = program.division
    until = [info.name for info in program.layers].index(division.until) if division and division.until else len(program.layers)
    parts = division.parts if division and layer < until else 1
    return -(-int(touched.rows[own & touched.multiplies].sum()) // max(1, places * parts))
