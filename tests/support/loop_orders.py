"""Every way to order the multiplies of small dense networks: the compiler's own instructions, cut into other chunks and in other orders.

The loops of a product are row groups, column blocks n, depth blocks k and chunks of rows. A variant is a cut of each layer's rows and an
order of its multiplies; it goes through the real scheduler and is timed. Nothing here asks `lowering.blocking`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, permutations, product
from typing import Any

import numpy as np

from tpucc.diagnostics import LimitError
from tpucc.isa.program import Program
from tpucc.lowering.tileprogram import TILE_RECORD, TileProgram
from tpucc.machines.v1 import Flag, Opcode
from tpucc.schedule import schedule

Chunk = tuple[int, int]
"""First row and number of rows."""
Step = tuple[int, int, Chunk]
"""One multiply: column block, depth block, rows."""
Order = tuple[Step, ...]


@dataclass
class Layer:
    """A dense layer's instructions, whatever their order was: one of each kind that the loops need."""

    rows: int = 0
    multiplies: dict[tuple[int, int], Any] = field(default_factory=dict)
    """By column block and depth block; `index` is the tile."""
    configures: dict[int, Any] = field(default_factory=dict)
    activates: dict[int, Any] = field(default_factory=dict)
    writes: dict[int, Any] = field(default_factory=dict)
    order: list[Step] = field(default_factory=list)
    """The compiler's own."""

    @property
    def cut(self) -> list[Chunk]:
        """The compiler's own."""
        return sorted({chunk for _, _, chunk in self.order})

    @property
    def wide(self) -> int:
        return len(self.activates)

    @property
    def deep(self) -> int:
        return len(self.multiplies) // self.wide


def layers_of(tiles: TileProgram) -> list[Layer]:
    """The layers of a tile program of dense layers, in order."""
    return [_layer(tiles, list(records)) for _, records in groupby(tiles.instructions, key=lambda record: int(record["layer"]))]


def _layer(tiles: TileProgram, records: Sequence[Any]) -> Layer:
    activates = {int(r["dest_buffer"]): r for r in reversed(records) if r["opcode"] == Opcode.ACTIVATE}
    column = {buffer: n for n, buffer in enumerate(sorted(activates))}
    of_group = {int(r["group"]): column[int(r["dest_buffer"])] for r in records if r["opcode"] == Opcode.ACTIVATE}
    layer = Layer(tiles.buffers[min(activates)].rows, activates={n: activates[buffer] for buffer, n in column.items()})
    depth: dict[int, int] = {}
    block = None
    for record in records:
        match record["opcode"]:
            case Opcode.MATRIX_MULTIPLY:
                n, k = of_group[int(record["group"])], depth.setdefault(int(record["ub_buffer"]), len(depth))
                layer.multiplies.setdefault((n, k), record)  # the first one, which switches to the tile
                layer.order.append((n, k, (int(record["ub"]), int(record["inner"]))))
            case Opcode.SET_CONFIGURATION:
                block = record
            case Opcode.ACTIVATE:
                layer.configures[column[int(record["dest_buffer"])]] = block
            case Opcode.WRITE_HOST_MEMORY:
                layer.writes[column[int(record["ub_buffer"])]] = record
    return layer


def orders(layer: Layer, cuts: Sequence[Sequence[Chunk]]) -> list[Order]:
    """Every nest of loops over these cuts: row groups outside, and within them column blocks, depth blocks and chunks in any order."""
    found: dict[Order, None] = {}
    for cut in cuts:
        for count in range(1, len(cut) + 1):
            groups = [[cut[i] for i in part] for part in np.array_split(range(len(cut)), count)]
            for loops in permutations(range(3)):
                found[tuple(step for group in groups for step in _nest(layer, group, loops))] = None
    return list(found)


def every_order(layer: Layer, cut: Sequence[Chunk]) -> Iterator[Order]:
    """Every order of the multiplies at all, loops or not."""
    return permutations(product(range(layer.wide), range(layer.deep), cut))


def _nest(layer: Layer, chunks: Sequence[Chunk], loops: Sequence[int]) -> Iterator[Step]:
    sizes = (range(layer.wide), range(layer.deep), range(len(chunks)))
    for indices in product(*(sizes[loop] for loop in loops)):
        n, k, c = (indices[loops.index(loop)] for loop in range(3))
        yield n, k, chunks[c]


def even_cuts(rows: int, most: int) -> list[list[Chunk]]:
    """Up to `most` chunks whose sizes differ by at most one."""
    return [_chunks([len(part) for part in np.array_split(range(rows), count)]) for count in range(1, min(rows, most) + 1)]


def all_cuts(rows: int) -> list[list[Chunk]]:
    """Every cut of the rows into chunks of any sizes."""
    return [_chunks(np.diff([0, *(np.flatnonzero(cut) + 1), rows]).tolist()) for cut in product([0, 1], repeat=rows - 1)]


def _chunks(sizes: Sequence[int]) -> list[Chunk]:
    starts = np.cumsum([0, *sizes]).tolist()
    return list(zip(starts, sizes, strict=False))


def scheduled(tiles: TileProgram, chosen: Sequence[Order]) -> Program | None:
    """The machine program with each layer in its order; None when its sums don't fit the accumulators."""
    try:
        return schedule(_Writing(tiles).written(chosen))
    except LimitError:
        return None


class _Writing:
    def __init__(self, tiles: TileProgram) -> None:
        self._tiles = tiles
        self._layers = layers_of(tiles)
        self._reads = {int(r["dest_buffer"]): r for r in tiles.instructions if r["opcode"] == Opcode.READ_HOST_MEMORY}
        self._records: list[Any] = []
        self._groups: list[int] = []
        self._tile = self._block = -1

    def written(self, chosen: Sequence[Order]) -> TileProgram:
        for layer, order in zip(self._layers, chosen, strict=True):
            self._layer(layer, order)
        return replace(self._tiles, instructions=np.array(self._records, TILE_RECORD), groups=tuple(self._groups))

    def _layer(self, layer: Layer, order: Order) -> None:
        groups: dict[tuple[int, Chunk], int] = {}
        left = {(n, chunk): layer.deep for n, _, chunk in order}
        for n, k, chunk in order:
            fresh = (n, chunk) not in groups
            group = groups.setdefault((n, chunk), len(self._groups))
            if fresh:
                self._groups.append(chunk[1])
            self._multiply(layer.multiplies[n, k], chunk, group, fresh)
            left[n, chunk] -= 1
            if not left[n, chunk]:
                self._activate(layer, n, chunk, group)
                del left[n, chunk]
                if n in layer.writes and all(other != n for other, _ in left):
                    self._add(layer.writes[n])

    def _multiply(self, record: Any, chunk: Chunk, group: int, fresh: bool) -> None:
        if int(record["ub_buffer"]) in self._reads:
            self._add(self._reads.pop(int(record["ub_buffer"])))
        switch = int(record["index"]) != self._tile
        self._tile = int(record["index"])
        kept = int(record["flags"]) & ~(Flag.SWITCH | Flag.ACCUMULATE)
        flags = kept | Flag.SWITCH * switch | Flag.ACCUMULATE * (not fresh)
        self._add(record, flags=flags, ub=chunk[0], inner=chunk[1], acc=0, group=group)

    def _activate(self, layer: Layer, n: int, chunk: Chunk, group: int) -> None:
        if int(layer.configures[n]["index"]) != self._block:
            self._block = int(layer.configures[n]["index"])
            self._add(layer.configures[n])
        self._add(layer.activates[n], dest=chunk[0], inner=chunk[1], acc=0, group=group)

    def _add(self, record: Any, **changed: int) -> None:
        written = record.copy()
        for name, value in changed.items():
            written[name] = value
        self._records.append(written)
