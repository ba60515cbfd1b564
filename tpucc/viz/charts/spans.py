"""What a span of the timeline is: a tile that is fetched, shifted in or multiplied by, a tensor that crosses the host link, or a layer."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from tpucc.diagnostics import counted
from tpucc.explain.names import shown
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.isa.tilegrid import tile_grid
from tpucc.machines.v1 import Opcode
from tpucc.viz.charts.tiles import order_of, places_of

MOST = 3
"""Tensors of one transfer that are named."""
_PART = re.compile(r"\.\d+(#\w+)?$")
"""The number of a host buffer among those of its tensor."""


class SpanNames:
    """The names of a program's instructions, and of its fetches of tiles."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._touched = effects(program.instructions)
        self._fetch = np.where(self._touched.pushes, np.cumsum(self._touched.pushes), np.cumsum(self._touched.pops)) - 1

    def of_fetch(self, number: int) -> str:
        """The tile of a fetch: `tile (0, 1) of fc1`, and of which matrix of a stack; empty if the program doesn't list it."""
        return self._fetched[number] if 0 <= number < len(self._fetched) else ""

    def of(self, index: int) -> str:
        """What an instruction works on."""
        touched, number = self._touched, int(self._fetch[index])
        if touched.host_reads[index] or touched.host_writes[index]:
            return self._transfer(int(touched.host_start[index]), int(touched.host_end[index])) or self._layer(index)
        if touched.pushes[index] and self.of_fetch(number):
            return self.of_fetch(number)
        if touched.multiplies[index] and self.of_fetch(number):
            return f"{counted(int(touched.rows[index]), 'row')} by {self.of_fetch(number)}"
        return self._layer(index)

    def bar(self, index: int) -> str:
        """The words of an instruction's bar."""
        opcode = Opcode(int(self._program.instructions["opcode"][index]))
        return " · ".join(part for part in (opcode.mnemonic, self.of(index), f"instruction {index:,}") if part)

    @cached_property
    def _fetched(self) -> list[str]:
        """The tile of each fetch, in their order."""
        program, found = self._program, {}
        for layer, order in order_of(program).items():
            grid, name = tile_grid(program.layers[layer], program.target.mxu), shown(program.layers[layer].name)
            stack = [f", matrix {matrix + 1:,} of {grid.matrices:,}" if grid.matrices > 1 else "" for matrix in grid.matrix.tolist()]
            places = zip(grid.row.tolist(), grid.column.tolist(), stack, strict=True)
            names = [f"tile ({row}, {column}) of {name}{of}" for row, column, of in places]
            found[layer] = iter([names[place] if place >= 0 else "" for place in places_of(program.layers[layer], order)])
        return [next(found[layer]) for layer in program.layer_of[self._touched.pushes].tolist()]

    def _transfer(self, start: int, end: int) -> str:
        """The tensors of these rows of host memory."""
        own = (buffer.name for buffer in self._program.host if buffer.start < end and start < buffer.end)
        names = [*dict.fromkeys(shown(_PART.sub("", name.partition(":")[2] or name)) for name in own)]
        more = [f"{len(names) - MOST:,} more"] if len(names) > MOST else []
        return ", ".join([*names[:MOST], *more])

    def _layer(self, index: int) -> str:
        layer = int(self._program.layer_of[index])
        return shown(self._program.layers[layer].name) if layer < len(self._program.layers) else ""
