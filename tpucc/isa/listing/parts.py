"""A program in the making, as the directives of a listing describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tpucc.diagnostics import printable
from tpucc.ir.digests import Known
from tpucc.isa.program import HostBuffer, HostWork, LayerInfo, Port, Program, array_types
from tpucc.numerics import AnyArray, Int8
from tpucc.target import Target


@dataclass(slots=True)
class Parts:
    """What the directives have said so far."""

    name: str
    target: Target
    known: Known | None = None
    """The constants that stand in the text by their digests."""
    source: str = ""
    cores: int = 1
    lower_bound_rows: int = 0
    notes: list[str] = field(default_factory=list)
    layers: list[LayerInfo] = field(default_factory=list)
    host: list[HostBuffer] = field(default_factory=list)
    ports: dict[str, list[Port]] = field(default_factory=lambda: {"input": [], "output": []})
    tiles: list[Int8] = field(default_factory=list)
    blocks: list[AnyArray] = field(default_factory=list)
    constants: list[Int8] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    host_steps: list[HostWork] = field(default_factory=list)
    fills: list[list[tuple[int, int, int]]] = field(default_factory=list)
    """The tiles of each layer."""
    free_row: int = 0
    """The first row of host memory after all buffers."""
    _names: set[str] = field(default_factory=set)

    def add_buffer(self, buffer: HostBuffer) -> int:
        """Adds a host buffer and gives its index. Raises `ValueError` when its name is taken."""
        if buffer.name in self._names:
            raise ValueError(f"two host buffers are named {printable(buffer.name)}")
        self._names.add(buffer.name)
        self.host.append(buffer)
        self.free_row = max(self.free_row, buffer.end)
        return len(self.host) - 1

    def add_layer(self, layer: LayerInfo) -> None:
        self.layers.append(layer)
        self.fills.append([])

    @property
    def program(self) -> Program:
        """All that the directives say, as a program without instructions."""
        types = array_types(self.target.mxu)
        return Program(
            name=self.name,
            source=self.source,
            source_text=self.texts.get("source_text", ""),
            target=self.target,
            instructions=_joined([], *types["instructions"]),
            layer_of=np.zeros(0, np.uint32),
            layers=tuple(replace(layer, tile_fills=tuple(fills)) for layer, fills in zip(self.layers, self.fills, strict=True)),
            tiles=_joined(self.tiles, *types["tiles"]),
            blocks=_joined(self.blocks, *types["blocks"]),
            host=tuple(self.host),
            constants=_joined(self.constants, *types["constants"]),
            inputs=tuple(self.ports["input"]),
            outputs=tuple(self.ports["output"]),
            prologue=self.texts.get("prologue", ""),
            epilogue=self.texts.get("epilogue", ""),
            lower_bound_rows=self.lower_bound_rows,
            notes=tuple(self.notes),
            host_steps=tuple(self.host_steps),
            cores=self.cores,
        )


def _joined(arrays: Sequence[AnyArray], dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    return np.concatenate([np.zeros((0, *shape), dtype), *arrays])
