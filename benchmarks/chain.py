"""Machine programs for the benchmarks, written down directly: chains of square fully connected layers.

The order of the instructions is that of the paper's MLPs: a column block of the result at a time, its tiles from top to bottom, weights
asked for as early as the FIFO has room, two halves of the accumulators in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.isa.instructions import Engine, Flag, Opcode, Records, record
from tpucc.isa.program import HostBuffer, LayerInfo, Port, Program, block_dtype
from tpucc.numerics import AnyArray, Int8
from tpucc.target import Target


@dataclass
class _Code:
    """Instructions as they come, and the layer that they belong to."""

    records: list[object] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    layer: int = 0

    def add(self, opcode: Opcode, flags: int = 0, **fields: int) -> None:
        self.records.append(record(opcode, flags, **fields))
        self.layers.append(self.layer)


def chain(target: Target, layers: int, width: int, batch: int, seed: int = 0) -> Program:
    """`layers` layers of `width` × `width` random int8 weights with ReLU, on `batch` rows. The batch must fit half of the accumulators."""
    blocks = -(-width // target.mxu)
    code = _Code()
    for block in range(blocks):
        code.add(Opcode.READ_HOST_MEMORY, host=block * batch, dest=block * batch, inner=batch)
    asked = 0
    for layer in range(layers):
        code.layer = layer
        _wait(code, Engine.MATRIX, Engine.ACTIVATION if layer else Engine.HOST)
        for column in range(blocks):
            asked = _multiplies(code, target, (layer, column), (blocks, batch), asked, layers * blocks * blocks)
            _activate(code, target, (layer, column), (blocks, batch))
            if layer == layers - 1:
                _wait(code, Engine.HOST, Engine.ACTIVATION)
                code.add(Opcode.WRITE_HOST_MEMORY, ub=(layers % 2 * blocks + column) * batch, host=(blocks + column) * batch, inner=batch)
    code.add(Opcode.HALT)
    return _program(target, code, layers, width, batch, seed)


def _multiplies(code: _Code, target: Target, place: tuple[int, int], size: tuple[int, int], asked: int, tiles: int) -> int:
    """The multiplies of one column block; returns the tiles asked for. Layer n reads half of the buffers and writes the other."""
    (layer, column), (blocks, batch) = place, size
    for row in range(blocks):
        number = (layer * blocks + column) * blocks + row
        while asked < min(tiles, number + target.weight_fifo_tiles):
            code.add(Opcode.READ_WEIGHTS, index=asked)
            asked += 1
        flags = Flag.SWITCH | (Flag.ACCUMULATE if row else 0)
        code.add(Opcode.MATRIX_MULTIPLY, flags, ub=(layer % 2 * blocks + row) * batch, acc=_half(target, column), inner=batch)
    return asked


def _activate(code: _Code, target: Target, place: tuple[int, int], size: tuple[int, int]) -> None:
    """The activate of a column block. The next block's multiplies wait for the one before it, which read the same accumulators."""
    (layer, column), (blocks, batch) = place, size
    _wait(code, Engine.MATRIX, Engine.ACTIVATION)
    code.add(Opcode.SET_CONFIGURATION, index=layer * blocks + column)
    _wait(code, Engine.ACTIVATION, Engine.MATRIX)
    code.add(Opcode.ACTIVATE, acc=_half(target, column), dest=((layer + 1) % 2 * blocks + column) * batch, inner=batch)


def _half(target: Target, column: int) -> int:
    return column % 2 * (target.accumulator_rows // 2)


def _wait(code: _Code, engine: Engine, wait: Engine) -> None:
    code.add(Opcode.SYNCHRONIZE, index=engine, engines=1 << wait)


def _program(target: Target, code: _Code, layers: int, width: int, batch: int, seed: int) -> Program:
    blocks = -(-width // target.mxu)
    host = tuple(
        HostBuffer(f"{'xy'[i // blocks]}.{i % blocks}", ("input", "output")[i // blocks], i * batch, batch) for i in range(2 * blocks)
    )
    names = [f"fc{layer}" for layer in range(layers)]
    fills = _fills(target, layers, width)
    macs = batch * width * width
    records: Records = np.array(code.records)
    return Program(
        name="chain",
        source="",
        source_text="",
        target=target,
        instructions=records,
        layer_of=np.array(code.layers, np.uint32),
        layers=tuple(LayerInfo(name, "fc", Origin(made_by="benchmark"), macs, (width, width), fills[i]) for i, name in enumerate(names)),
        tiles=_tiles(target, layers, width, seed),
        blocks=_blocks(target, layers * blocks, width),
        host=host,
        constants=np.zeros((0, target.mxu), np.int8),
        inputs=(Port("x", (batch, width), 1.0, 0, (batch,), tuple(range(blocks))),),
        outputs=(Port("y", (batch, width), 1.0, 0, (batch,), tuple(range(blocks, 2 * blocks))),),
        prologue="",
        epilogue="",
    )


def _fills(target: Target, layers: int, width: int) -> list[tuple[tuple[int, int, int], ...]]:
    used = [min(target.mxu, width - start) for start in range(0, width, target.mxu)]
    count = len(used)
    return [
        tuple(((layer * count + column) * count + row, used[row], used[column]) for column in range(count) for row in range(count))
        for layer in range(layers)
    ]


def weights(layers: int, width: int, seed: int) -> Int8:
    """Random int8 weights [layers, width, width], as a trained layer's look after quantisation: normal, the largest at 127."""
    normal = np.random.default_rng(seed).normal(0, 30, (layers, width, width))
    return np.clip(np.rint(normal), -127, 127).astype(np.int8)


def _tiles(target: Target, layers: int, width: int, seed: int) -> Int8:
    mxu, blocks = target.mxu, -(-width // target.mxu)
    padded = np.zeros((layers, blocks * mxu, blocks * mxu), np.int8)
    padded[:, :width, :width] = weights(layers, width, seed)
    grid = padded.reshape(layers, blocks, mxu, blocks, mxu).transpose(0, 3, 1, 2, 4)
    return np.ascontiguousarray(grid).reshape(-1, mxu, mxu)


def _blocks(target: Target, count: int, width: int) -> AnyArray:
    """ReLU blocks whose scale keeps the values spread over int8."""
    blocks = np.zeros(count, block_dtype(target.mxu))
    blocks["multiplier"] = np.float32(1 / (20 * np.sqrt(width)))
    blocks["low"], blocks["high"] = 0, 127
    return blocks
