"""The constants in weight memory, each stored once: weight tiles and parameter blocks."""

from __future__ import annotations

from hashlib import blake2b
from math import prod

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError, Origin
from tpucc.ir import Node
from tpucc.ir.dtypes import DeviceFormat
from tpucc.layers.kinds import Epilogue, Requantise
from tpucc.machines.v1.formats import encoding_of
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int8, Int32, Int64
from tpucc.target import MEMORY_ROWS, Target


class TilePool:
    """Weight matrices cut into tiles [mxu, mxu], zero where a matrix ends inside one; equal tiles have one index.

    Of each tile the pool keeps the part in use, so that small matrices take little room.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._capacity = target.weight_memory_bytes // target.tile_bytes
        self._tiles: list[Int8] = []
        self._index: dict[tuple[tuple[int, ...], bytes], int] = {}
        self._zero = -1
        self.written = 0
        """The number of tiles that the host will write. Their indices come after all others."""

    def add(self, node: Node, weights: Int8) -> Int64:
        """The indices [K blocks, N blocks] of the tiles of `weights` [K, N], the constant `node`. Raises `LimitError` E0622 where they
        don't fit."""
        mxu, (depth, width) = self._target.mxu, weights.shape
        indices = np.empty((-(-depth // mxu), -(-width // mxu)), np.int64)
        for k, n in np.ndindex(*indices.shape):
            indices[k, n] = self._one(node, weights[k * mxu : (k + 1) * mxu, n * mxu : (n + 1) * mxu])
        return indices

    def reserve(self, node: Node, matrices: int, depth: int, width: int) -> Int64:
        """The indices [matrices, K blocks, N blocks] of new tiles for matrices [depth, width] that the host will write. No tile may be
        added afterwards. Raises `LimitError` E0622 where they don't fit."""
        mxu, first = self._target.mxu, len(self._tiles) + self.written
        shape = matrices, -(-depth // mxu), -(-width // mxu)
        if first + prod(shape) > self._capacity:
            raise self._full(node)
        self.written += prod(shape)
        return first + np.arange(prod(shape)).reshape(shape)

    def is_zero(self, index: int) -> bool:
        """Whether all weights of a tile are zero."""
        return index == self._zero

    def stacked(self) -> Int8:
        """All tiles: int8 [tiles, mxu, mxu]."""
        mxu = self._target.mxu
        tiles = np.zeros((len(self._tiles), mxu, mxu), np.int8)
        for tile, part in zip(tiles, self._tiles, strict=True):
            tile[: part.shape[0], : part.shape[1]] = part
        return tiles

    def _one(self, node: Node, weights: Int8) -> int:
        part = np.ascontiguousarray(used_part(weights))
        index = self._index.setdefault((part.shape, blake2b(part.data, digest_size=16).digest()), len(self._tiles))
        if index == len(self._tiles):
            if index >= self._capacity:
                raise self._full(node)
            self._tiles.append(part)
            if not part.size:
                self._zero = index
        return index

    def _full(self, node: Node) -> LimitError:
        why = f"{node.name} needs more tiles than the {self._capacity:,} that it has room for"
        return weights_do_not_fit(self._target, why, node.origin)


def used_part(matrix: Int8) -> Int8:
    """A matrix without the rows at its end, and the columns at its right, that are all zero."""
    if matrix[-1].any() and matrix[:, -1].any():
        return matrix
    rows, columns = np.nonzero(matrix)
    return matrix[: rows.max() + 1, : columns.max() + 1] if rows.size else matrix[:0, :0]


class ParameterBlockPool:
    """Parameter blocks of the activation unit; equal blocks have one index."""

    def __init__(self, mxu: int, format: DeviceFormat) -> None:
        self._mxu = mxu
        self._format = format
        self._blocks: list[AnyArray] = []
        self._index: dict[bytes, int] = {}

    def product(self, epilogue: Epilogue, bias: Int32, multiplier: Float32, table: DeviceInts | None) -> tuple[int, ...]:
        """The index of the block for each `mxu` columns of a product; `bias` and `multiplier` are [N]."""
        width = len(bias)
        blocks = self._fresh(-(-width // self._mxu), epilogue, table)
        biases, multipliers = np.zeros(blocks["bias"].size, np.int32), np.ones(blocks["multiplier"].size, np.float32)
        biases[:width], multipliers[:width] = bias, multiplier
        blocks["bias"], blocks["multiplier"] = biases.reshape(blocks["bias"].shape), multipliers.reshape(blocks["multiplier"].shape)
        return tuple(self._one(block) for block in blocks)

    def element_wise(self, epilogue: Epilogue | None, table: DeviceInts | None) -> int:
        """The index of the block of an element-wise layer: all its columns share one block."""
        return self._one(self._fresh(1, epilogue or Requantise(), table)[0])

    def average(self, epilogue: Epilogue, pixels: int) -> int:
        """The index of the block for averages of windows of `pixels` pixels."""
        block = self._fresh(1, epilogue, None)
        block["scale_a"] /= np.float32(pixels)
        return self._one(block[0])

    def stacked(self) -> AnyArray:
        """All blocks: a structured array of `parameter_block_dtype(mxu)`."""
        return np.array(self._blocks, parameter_block_dtype(self._mxu))

    def _fresh(self, count: int, epilogue: Epilogue, table: DeviceInts | None) -> AnyArray:
        """`count` blocks of one epilogue. Numbers that the epilogue doesn't give are neutral: bias 0, multipliers and scales 1."""
        blocks = np.zeros(count, parameter_block_dtype(self._mxu))
        for field in ("multiplier", "scale_a", "scale_b"):
            blocks[field] = 1
        blocks["zero"] = epilogue.zero
        blocks["low"], blocks["high"] = epilogue.bounds(self._format)
        operands = [*zip(("scale_a", "scale_b"), epilogue.scales, strict=False), *zip(("zero_a", "zero_b"), epilogue.zeros, strict=False)]
        for field, value in operands:
            blocks[field] = value
        if table is not None:
            blocks["has_table"], blocks[encoding_of(self._format).table] = 1, table
        return blocks

    def _one(self, block: AnyArray) -> int:
        index = self._index.setdefault(block.tobytes(), len(self._blocks))
        if index == len(self._blocks):
            self._blocks.append(block)
        return index


def require_room(target: Target, tiles: Int8, blocks: AnyArray, written: int = 0) -> None:
    """Raises `LimitError` E0622 where the tiles, the `written` tiles that the program writes and the parameter blocks don't fit weight
    memory together, and E0640 where the program writes more tiles than can be simulated."""
    most = MEMORY_ROWS // target.mxu
    if written > most:
        message = f"the host writes {written:,} tiles while the program runs, and at most {most:,} can be simulated"
        help = "a smaller batch writes fewer; with --write-weights-computed-products host these products are the host's"
        raise LimitError(Diagnostic("E0640", message, help=(help,)))
    needed = tiles.nbytes + written * target.tile_bytes + blocks.nbytes
    if needed > target.weight_memory_bytes:
        raise weights_do_not_fit(target, f"tiles and parameter blocks take {needed:,} bytes")


def weights_do_not_fit(target: Target, why: str, origin: Origin | None = None) -> LimitError:
    message = f"the weights don't fit the weight memory of {target.weight_memory_bytes:,} bytes: {why}"
    tile = f"a tile takes {target.tile_bytes:,} bytes on {target.name}, however few weights it holds"
    labels = origin.labels() if origin else ()
    return LimitError(Diagnostic("E0622", message, labels, (tile, "use fewer or narrower layers, or a larger target")))
