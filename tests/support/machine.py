"""Machine programs for tests, written down instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.ir.dtypes import I8, I16
from tpucc.isa.program import HostBuffer, LayerInfo, Port, Program
from tpucc.machines.v1 import V1, Opcode
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.numerics import AnyArray
from tpucc.target import Target, load_target

TINY = load_target("tiny")
TWO_LAYERS = """
param batch = 4
weights random(seed=1)
model two(x: f32[batch, 4] in [-1.0, 1.0]):
    weight w: f32[4, 8]
    weight v: f32[8, 4]
    return tanh(relu(x @ w) @ v)
"""
"""A network that `tiny` runs in 56 cycles."""


@dataclass
class Writer:
    """Collects a program's parts. Host memory: an input of `rows` × mxu, then an output of as many rows.

    In a `wide` program they hold half as many rows of 16-bit values.
    """

    target: Target = TINY
    rows: int = 16
    wide: bool = False
    records: list[Any] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    tiles: list[AnyArray] = field(default_factory=list)
    blocks: list[AnyArray] = field(default_factory=list)
    layer: int = 0

    def add(self, opcode: Opcode, flags: int = 0, **fields: int) -> None:
        self.records.append(V1.record(opcode, flags, **fields))
        self.layers.append(self.layer)

    def block(self, **fields: Any) -> int:
        """A new parameter block; what isn't given is neutral. Returns its index."""
        made = np.zeros((), parameter_block_dtype(self.target.mxu))
        made["multiplier"], made["low"], made["high"], made["scale_a"], made["scale_b"] = 1, -128, 127, 1, 1
        for name, value in fields.items():
            made[name] = value
        self.blocks.append(made)
        return len(self.blocks) - 1

    def tile(self, values: Any) -> int:
        """A new tile; values of a smaller matrix go to its corner. Returns its index."""
        made = np.zeros((self.target.mxu, self.target.mxu), np.int8)
        values = np.asarray(values)
        made[: values.shape[0], : values.shape[1]] = values
        self.tiles.append(made)
        return len(self.tiles) - 1

    def program(self) -> Program:
        self.add(Opcode.HALT)
        mxu, layers = self.target.mxu, max(self.layers) + 1
        return Program(
            name="test",
            source="",
            source_text="",
            target=self.target,
            instructions=np.array(self.records),
            layer_of=np.array(self.layers, np.uint32),
            layers=tuple(LayerInfo(f"layer{i}", "fc", Origin(made_by="test"), 0, (0, 0), ()) for i in range(layers)),
            tiles=np.array(self.tiles, np.int8).reshape(-1, mxu, mxu),
            blocks=np.array(self.blocks, parameter_block_dtype(mxu)),
            host=(HostBuffer("x", "input", 0, self.rows), HostBuffer("y", "output", self.rows, self.rows)),
            constants=np.zeros((0, mxu), np.int8),
            inputs=(self._port("x", 0),),
            outputs=(self._port("y", 1),),
            prologue="",
            epilogue="",
        )

    def _port(self, name: str, block: int) -> Port:
        rows = self.rows // 2 if self.wide else self.rows
        return Port(name, (rows, self.target.mxu), 1.0, 0, (rows,), (block,), I16 if self.wide else I8)
