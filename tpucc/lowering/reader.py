"""Nodes of the device graph as steps on tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

import numpy as np

from tpucc.diagnostics import Diagnostic, InternalError, Origin
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat
from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.isa.instructions import Function
from tpucc.layers.kinds import (
    Conv,
    Fc,
    Layer,
    Move,
    Pool,
    Sides,
    Vector,
    is_layer,
    is_written,
    looks_up,
    own_rows,
    weight_shape,
    weights_of,
)
from tpucc.lowering.pools import BlockPool, TilePool
from tpucc.lowering.tensors import NO_SIDES, Access, Shape, Tensor, border_rows, borders, padding_rows, whole, wider
from tpucc.lowering.workload import (
    SKIPPED,
    Copy,
    ElementWise,
    Level,
    Moving,
    Operand,
    Pooling,
    Product,
    Region,
    Step,
    TileWrite,
    Weighted,
    Work,
    WrittenProducts,
)
from tpucc.numerics import AnyArray, Int64
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.target import Target

FUNCTIONS = {"add": Function.ADD, "subtract": Function.SUBTRACT, "multiply": Function.MULTIPLY, "table": Function.TABLE}
POOLINGS = {"max": Function.MAX, "average": Function.AVERAGE}
ROW_MARK = "#row"
"""Begins the name of a row that borders are filled with; `#` stands in no name of a node."""


class Reader:
    """Turns nodes into `steps`, in the graph's order; views are accesses to the tensor of what they show."""

    def __init__(self, device: Graph, target: Target, segments: Mapping[str, int]) -> None:
        self.steps: list[Step] = []
        self.tiles = TilePool(target)
        self.format = format_of(device)
        self.blocks = BlockPool(target.mxu, self.format)
        self._device = device
        self._mxu = target.mxu
        self._segments = segments
        self._segment = 0
        self._borders = borders(device)
        self._values: dict[str, Access] = {}
        self._cut: dict[tuple[str, int], list[Int64]] = {}
        self._reserved: dict[str, tuple[Int64, tuple[TileWrite, ...]]] = {}
        self._rows: dict[int, Tensor] = {}
        self._surrounded: dict[tuple[str, Sides], Tensor] = {}

    def read(self) -> None:
        self._cut_constants()
        for node in self._device:
            self._segment = self._segments.get(node.name, self._segment)
            self._values[node.name] = self._value(node)

    def output(self, name: str) -> Tensor:
        """The tensor that holds the value and nothing else, in the order of its rows."""
        value = self._values[name]
        self._segment = self._segments.get(name, 0)
        return value.tensor if value.is_whole else self._copied(self._device[name], value).tensor

    def input(self, name: str) -> Tensor:
        return self._values[name].tensor

    def _value(self, node: Node) -> Access:
        match node.attributes:
            case Fc() | Conv() | Pool() | Vector() | Move():
                return self._layer(node, node.attributes)
            case ConstantAttributes(value):
                return whole(Tensor(node.name, node.type, data=value.data))
            case SliceAttributes(squeeze=squeeze) as part:
                return self._values[node.operands[0]].taken(part.ranges[:-1], squeeze)
            case TransposeAttributes(perm):
                return self._values[node.operands[0]].transposed([axis % len(perm) for axis in perm[:-1]])
        return whole(Tensor(node.name, node.type, is_input=True)) if node.is_input else self._regrouped(node)

    def _cut_constants(self) -> None:
        """Tiles of constant weights come before those that the host writes."""
        for node in self._device:
            if isinstance(node.attributes, Fc):
                for name in weights_of(node):
                    if not is_written(self._device[name]):
                        self._tiles(name)
            elif isinstance(node.attributes, Conv) and node.attributes.unit == "matrix":
                self._tiles(node.operands[1], node.attributes.groups)

    def _regrouped(self, node: Node) -> Access:
        """Another shape of a value; rows that no walk visits in that order are copied first."""
        source = self._device[node.operands[0]]
        if node.op != "reshape" or (source.type.rows, source.type.columns) != (node.type.rows, node.type.columns):
            message = f"{node.name} shows {source.type.brief} as {node.type.brief}, which moves data between rows"
            raise InternalError(Diagnostic("E0904", message))
        value = self._values[source.name]
        shown = value.reshaped(node.type.shape[:-1]) or self._copied(source, value).reshaped(node.type.shape[:-1])
        assert shown is not None
        return shown

    def _layer(self, node: Node, layer: Layer) -> Access:
        y = whole(Tensor(node.name, node.type, sides=self._borders.get(node.name, NO_SIDES)))
        self._add(node.name, self._origin(node), y, self._work(node, layer, y))
        return y

    def _work(self, node: Node, layer: Layer, y: Access) -> Work:
        match layer:
            case Fc() if is_written(self._device[node.operands[layer.sources]]):
                return self._written(node, layer, y)
            case Fc():
                return self._fc(node, layer)
            case Conv(unit="vector"):
                return self._weighted(node, layer, y)
            case Conv():
                return self._conv(node, layer, y)
            case Pool():
                return self._pool(node, layer, y)
            case Vector():
                return self._vector(node, layer, y)
            case Move():
                return self._move(node, layer, y)

    def _origin(self, node: Node) -> Origin:
        """The layer's own places in the source, then those of its weights: a line that declares them has its tiles, too."""
        constants = [operand.origin for operand in self._device.operands(node) if isinstance(operand.attributes, ConstantAttributes)]
        return replace(node.origin, spans=node.origin.merged(*constants).spans)

    def _add(self, name: str, origin: Origin, y: Access, work: Work) -> None:
        filled = self._row(self._zero(y.tensor)) if y.tensor.sides != NO_SIDES else None
        fills = () if filled is None else tuple(self._fill(filled, rows) for rows in border_rows(y.tensor))
        self.steps.append(Step(name, origin, y, work, fills, self._segment))

    def _copied(self, node: Node, value: Access, sides: Sides = NO_SIDES) -> Access:
        """A copy of a value on rows of its own."""
        copy = whole(Tensor(f"{node.name}#copy{len(self.steps)}", node.type, sides=sides))
        why = "a copy with a border of zero points" if sides != NO_SIDES else "a copy whose rows are in order"
        self._add(f"{node.name}#copy{len(self.steps)}", node.origin, copy, Moving((Copy(value, copy),), why))
        return copy

    def _data(self, name: str) -> AnyArray:
        attributes = self._device[name].attributes
        assert isinstance(attributes, ConstantAttributes), f"{name} must be a constant"
        return attributes.value.data

    def _fc(self, node: Node, layer: Fc) -> Product:
        xs, weights = node.operands[: layer.sources], node.operands[layer.sources : 2 * layer.sources]
        levels = [
            (self._values[x], block, row)
            for x, name in zip(xs, weights, strict=True)
            for block, row in enumerate(self._tiles(name)[0].tolist())
        ]
        return self._product(node, layer, levels, weights, node.operands[2 * layer.sources :])

    def _written(self, node: Node, layer: Fc, y: Access) -> WrittenProducts:
        """A product with matrices of the host: a step for each of them, on the rows that it multiplies."""
        x, weights = self._values[node.operands[0]], self._device[node.operands[1]]
        *lead, depth, width = weights.type.shape
        tiles, writes = self._written_tiles(weights, prod(lead), depth, width)
        if not lead:
            product = self._product(node, layer, self._levels(x, tiles[0]), node.operands[1:2], node.operands[2:])
            return WrittenProducts(writes, (Step(node.name, node.origin, y, product, (), self._segment),))
        around = y.shape[:-1]
        source, matrices = x.broadcast(y.shape), np.broadcast_to(np.arange(prod(lead)).reshape(lead), around)
        parts = []
        for index in np.ndindex(*around):
            levels = self._levels(_one(source, index), tiles[matrices[index]])
            product = self._product(node, layer, levels, node.operands[1:2], node.operands[2:])
            parts.append(Step(node.name, node.origin, _one(y, index), product, (), self._segment))
        return WrittenProducts(writes, tuple(parts))

    def _written_tiles(self, weights: Node, matrices: int, depth: int, width: int) -> tuple[Int64, tuple[TileWrite, ...]]:
        """The tiles of weights that the host computes, [matrices, K blocks, N blocks], and how they are written. Layers with the same
        weights share them."""
        if weights.name not in self._reserved:
            mxu, tensor = self._mxu, self._values[weights.name].tensor
            tiles = self.tiles.reserve(weights, matrices, depth, width)
            writes = tuple(
                TileWrite(int(tile), tensor, n, matrix * depth + k * mxu, min(mxu, depth - k * mxu))
                for (matrix, k, n), tile in np.ndenumerate(tiles)
            )
            self._reserved[weights.name] = tiles, writes
        return self._reserved[weights.name]

    def _levels(self, x: Access, tiles: Int64) -> list[tuple[Access, int, list[int]]]:
        """One level for each column block of x, from the tiles [K blocks, N blocks] of a matrix."""
        return [(x, block, row) for block, row in enumerate(tiles.tolist())]

    def _conv(self, node: Node, layer: Conv, y: Access) -> Product:
        """One level for each position of the kernel and column block of x: the pixels that it meets."""
        x, top, left = self._surrounded_by(node, layer)
        width, outputs = self._device[node.operands[1]].type.shape[1], (y.shape[1], y.shape[2])
        (down, across), positions = layer.dilation, enumerate(self._tiles(node.operands[1], layer.groups))
        levels = [
            (x.windows((position // width * down - top, position % width * across - left), layer.stride, outputs), block, row)
            for position, tiles in positions
            for block, row in enumerate(tiles.tolist())
        ]
        return self._product(node, layer, levels, node.operands[1:2], node.operands[2:])

    def _weighted(self, node: Node, layer: Conv, y: Access) -> Weighted:
        """The windows of all pixels of the result, and a row of weights for each position of the kernel."""
        x, top, left = self._surrounded_by(node, layer)
        height, width = self._device[node.operands[1]].type.shape[:2]
        bias, multiplier, *table = (self._data(name) for name in node.operands[2:])
        blocks = self.blocks.product(layer.epilogue, bias, multiplier, table[0] if table else None)
        (down, across), first = layer.dilation, x.windows((-top, -left), layer.stride, (y.shape[1], y.shape[2]))
        region = Region(first, y, (height, width), (x.steps[1] * down, x.steps[2] * across), 0)
        weights = self._values[node.operands[1]].reshaped((1, height * width))
        assert weights is not None  # a constant's rows are in order
        return Weighted(region, weights.broadcast((y.shape[0], height * width)), blocks)

    def _surrounded_by(self, node: Node, layer: Conv) -> tuple[Access, int, int]:
        """The operand of a convolution, with a border at least as wide as its padding; and its padding at the top and on the left."""
        name = node.operands[0]
        value, (top, _, left, _) = self._values[name], layer.sides
        own = value.tensor.sides
        if layer.sides == NO_SIDES or (wider(own, layer.sides) == own and value == whole(value.tensor)):
            return value, top, left
        key = (name, layer.sides)
        if key not in self._surrounded:
            self._surrounded[key] = self._copied(self._device[name], value, layer.sides).tensor
        return whole(self._surrounded[key]), top, left

    def _product(
        self, node: Node, layer: Fc | Conv, levels: list[tuple[Access, int, list[int]]], weights: tuple[str, ...], tail: tuple[str, ...]
    ) -> Product:
        bias, multiplier, *table = (self._data(name) for name in tail)
        blocks = self.blocks.product(layer.epilogue, bias, multiplier, table[0] if table else None)
        shape = weight_shape(node, self._device)
        kept = self._without_zeros([row for _, _, row in levels])
        return Product(
            "fc" if isinstance(layer, Fc) else "conv",
            tuple(Level(x, block, tuple(row)) for (x, block, _), row in zip(levels, kept, strict=True) if any(t != SKIPPED for t in row)),
            blocks,
            tuple(self._fills(levels, shape[1])),
            shape,
            sum(own_rows(self._device[name]) for name in weights),
            isinstance(layer, Fc) and layer.moves,
            self._group(layer, weights[0]),
        )

    def _group(self, layer: Fc | Conv, kernel: str) -> tuple[int, int]:
        """The channels and filters of a group of a convolution; zeros without groups."""
        if isinstance(layer, Fc) or layer.groups == 1:
            return 0, 0
        *_, channels, filters = self._device[kernel].type.shape
        return channels, filters // layer.groups

    def _without_zeros(self, rows: list[list[int]]) -> list[list[int]]:
        """The tiles of each level, those of nothing but zeros skipped; a column block keeps at least one tile, which begins its sum."""
        kept = [[SKIPPED if self.tiles.is_zero(tile) else tile for tile in row] for row in rows]
        for n, first in enumerate(rows[0]):
            if all(row[n] == SKIPPED for row in kept):
                kept[0][n] = first
        return kept

    def _fills(self, levels: list[tuple[Access, int, list[int]]], width: int) -> list[tuple[int, int, int]]:
        """For each tile, level by level, its index, and the rows and columns of it that hold weights."""
        mxu = self._mxu
        return [
            (tile, min(mxu, x.tensor.columns - block * mxu), min(mxu, width - n * mxu))
            for x, block, row in levels
            for n, tile in enumerate(row)
        ]

    def _tiles(self, weights: str, groups: int = 1) -> list[Int64]:
        """The weight tiles [K blocks, N blocks] of each position of a kernel, for all channels of its groups; a matrix has one."""
        key = (weights, groups)
        if key not in self._cut:
            data, node = self._data(weights), self._device[weights]
            self._cut[key] = [self.tiles.add(node, block_diagonal(matrix, groups)) for matrix in data.reshape(-1, *data.shape[-2:])]
        return self._cut[key]

    def _vector(self, node: Node, layer: Vector, y: Access) -> ElementWise:
        names = node.operands[:-1] if looks_up(layer) else node.operands
        block = self.blocks.element_wise(layer.epilogue, self._data(node.operands[-1]) if looks_up(layer) else None)
        return ElementWise(tuple(self._operand(name, node, y.shape) for name in names), FUNCTIONS[layer.function], block)

    def _operand(self, name: str, user: Node, shape: Shape) -> Operand:
        return Operand(self._values[name].broadcast(shape), self._device[name].type.columns == 1 < user.type.columns)

    def _pool(self, node: Node, layer: Pool, y: Access) -> Pooling:
        """One region for each shape that windows have: those at the border see fewer pixels."""
        x = self._values[node.operands[0]]
        around = (layer.counted[:2], layer.counted[2:])
        windows = zip(x.shape[1:], layer.size, layer.stride, layer.sides[::2], y.shape[1:], around, strict=True)
        down, across = (runs(*numbers) for numbers in windows)
        regions = []
        for rows in down:
            for columns in across:
                outputs = (rows.outputs, columns.outputs)
                first = x.windows((rows.pixel, columns.pixel), layer.stride, outputs)
                part = y.sliced((0, rows.first, columns.first), (y.shape[0], rows.first + outputs[0], columns.first + outputs[1]))
                block = 0 if layer.epilogue is None else self.blocks.average(layer.epilogue, rows.counted * columns.counted)
                regions.append(Region(first, part, (rows.pixels, columns.pixels), (x.steps[1], x.steps[2]), block))
        return Pooling(POOLINGS[layer.function], tuple(regions))

    def _move(self, node: Node, layer: Move, y: Access) -> Moving:
        values = [self._values[name] for name in node.operands]
        if layer.function == "pad":
            inner = [(before, size - after) for size, (before, after) in zip(y.shape, layer.pads, strict=False)]
            row = self._row(layer.value)
            fills = (self._fill(row, rows) for rows in padding_rows(y, layer.pads[:-1]))
            return Moving((*fills, Copy(values[0], y.sliced(*zip(*inner, strict=True)))))
        copies, at = [], 0
        for value in values:
            first, last = [0] * len(y.shape), list(y.shape)
            first[layer.axis], last[layer.axis] = at, at + value.shape[layer.axis]
            at = last[layer.axis]
            copies.append(Copy(value, y.sliced(first, last)))
        return Moving(tuple(copies))

    def _fill(self, row: Tensor, rows: Access) -> Copy:
        return Copy(whole(row).broadcast(rows.shape), rows, every_block=True)

    def _row(self, value: int) -> Tensor:
        """A constant row of one value in all lanes."""
        if value not in self._rows:
            data = np.full((1, self._mxu), value, self.format.numpy)
            self._rows[value] = Tensor(f"{ROW_MARK}{value}", TensorType(self.format.name, data.shape), data=data)
        return self._rows[value]

    def _zero(self, tensor: Tensor) -> int:
        assert tensor.type.quantisation is not None, f"{tensor.name} has no zero point"
        return tensor.type.quantisation.zero_point


def _one(value: Access, index: tuple[int, ...]) -> Access:
    """The rows [M] of a value [..., M] at an index of its leading sizes."""
    places = (*(range(at, at + 1) for at in index), range(value.shape[-1]))
    return value.taken(places, tuple(range(len(index))))


def block_diagonal(matrix: AnyArray, groups: int) -> AnyArray:
    """The matrix [C, F] of a kernel position whose groups have the matrix [C / groups, F]: zeros between different groups."""
    if groups == 1:
        return matrix
    depth, width = matrix.shape
    whole = np.zeros((groups, depth, groups, width // groups), matrix.dtype)
    each = np.arange(groups)
    whole[each, :, each] = matrix.reshape(depth, groups, -1).swapaxes(0, 1)
    return whole.reshape(groups * depth, width)


def format_of(device: Graph) -> DeviceFormat:
    """How the values of a device graph are held, all alike."""
    held = (node.type.dtype for node in device if is_layer(node) or node.is_input)
    return DEVICE_FORMATS[next(held, DEFAULT_FORMAT.name)]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive windows that see equally many pixels, one stride apart.

    `first` of the `outputs` windows is the first; its first real pixel is `pixel`. Each sees `pixels`, and an average divides by `counted`.
    """

    first: int
    outputs: int
    pixel: int
    pixels: int
    counted: int


def runs(size: int, window: int, stride: int, before: int, outputs: int, counted: tuple[int, int] = (0, 0)) -> list[Run]:
    """The windows over an axis of `size` pixels with `before` of padding in front; only real pixels are seen. So many pixels before and
    after the real ones are `counted`."""
    spans = []
    for output in range(outputs):
        start = output * stride - before
        first, last = max(0, start), min(size, start + window)
        spans.append((output, first, last - first, min(size + counted[1], start + window) - max(-counted[0], start)))
    alike = groupby(spans, key=lambda span: (span[1] - span[0] * stride, *span[2:]))
    return [Run(found[0][0], len(found), *found[0][1:]) for found in (list(group) for _, group in alike)]
