"""The state of lowering a graph: the access of each value, and the weight tiles and parameter blocks of constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tpucc.diagnostics import Diagnostic, InternalError
from tpucc.ir import Graph, Node, TensorType
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS, DeviceFormat
from tpucc.isa.program import COPY_MARK
from tpucc.layers.kinds import Conv, ConvUnit, Epilogue, Fc, Sides, is_layer, is_written, weights_of
from tpucc.lowering.steps import Moving, Region, Step, TileWrite, Work, copied
from tpucc.lowering.tensors import NO_SIDES, Access, Tensor, border_rows, borders, whole, wider
from tpucc.lowering.weight_memory import ParameterBlockPool, TilePool
from tpucc.numerics import AnyArray, Int64
from tpucc.ops import legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import View
from tpucc.ops.slice import SliceAttributes
from tpucc.ops.transpose import TransposeAttributes
from tpucc.target import Target

ROW_MARK = "#row"
"""Begins the name of a row that borders are filled with; `#` stands in no name of a node."""


class LoweredValues:
    """The values of the nodes that were lowered so far, the tiles and parameter blocks of their constants, and the `steps` that compute
    them.

    Each value is an access to a tensor; a view is an access to its operand's tensor.
    """

    def __init__(self, device: Graph, target: Target, segments: Mapping[str, int]) -> None:
        """Cuts all constant weights into tiles. Their tiles come before the tiles that the host writes."""
        self.device = device
        self.mxu = target.mxu
        self.format = format_of(device)
        self.tile_pool = TilePool(target)
        self.parameter_block_pool = ParameterBlockPool(target.mxu, self.format)
        self.steps: list[Step] = []
        self._segments = segments
        self._segment = 0
        self._borders = borders(device)
        self._values: dict[str, Access] = {}
        self._cut: dict[tuple[str, int], list[Int64]] = {}
        self._reserved: dict[str, tuple[Int64, tuple[TileWrite, ...]]] = {}
        self._rows: dict[int, Tensor] = {}
        self._surrounded: dict[tuple[str, Sides], Tensor] = {}
        for node in device:
            if isinstance(node.attributes, Fc):
                for name in weights_of(node):
                    if not is_written(device[name]):
                        self.weight_tiles(name)
            elif isinstance(node.attributes, Conv) and node.attributes.unit == ConvUnit.MATRIX:
                self.weight_tiles(node.operands[1], node.attributes.groups)

    def __getitem__(self, name: str) -> Access:
        """The value of a node that was lowered."""
        return self._values[name]

    def begin(self, node: Node) -> None:
        """Makes the node's segment the segment of the steps that follow, if the node has one."""
        self._segment = self._segments.get(node.name, self._segment)

    def result(self, node: Node) -> Access:
        """The value of a layer's result: all rows of a new tensor, without its border."""
        self._values[node.name] = whole(Tensor(node.name, node.type, sides=self._borders.get(node.name, NO_SIDES)))
        return self._values[node.name]

    def add(self, node: Node, y: Access, work: Work) -> None:
        """Adds the step of a layer. Its origin has the layer's places in the source, then the places of its constants: the tiles of weights
        come from the line that declares the weights, too."""
        constants = [operand.origin for operand in self.device.operands(node) if isinstance(operand.attributes, ConstantAttributes)]
        origin = replace(node.origin, spans=node.origin.merged(*constants).spans)
        self.steps.append(Step(node.name, origin, y, work, tuple(self._border_fills(y.tensor)), self._segment))

    def part(self, node: Node, y: Access, work: Work) -> Step:
        """A step for some rows of the layer's result."""
        return Step(node.name, node.origin, y, work, (), self._segment)

    def show(self, node: Node) -> None:
        """Adds the value of a node that is no layer: an input, a constant or a view. It has no step."""
        self._values[node.name] = self._shown(node)

    def output(self, name: str) -> Tensor:
        """A tensor that holds the value and nothing else, in the order of its rows: the value's own tensor, or a copy."""
        value = self._values[name]
        self._segment = self._segments.get(name, 0)
        return value.tensor if value.is_whole else self._copied(self.device[name], value).tensor

    def data(self, name: str) -> AnyArray:
        """The array of a constant."""
        attributes = self.device[name].attributes
        assert isinstance(attributes, ConstantAttributes), f"{name} must be a constant"
        return attributes.value.data

    def weight_tiles(self, weights: str, groups: int = 1) -> list[Int64]:
        """The indices of the weight tiles [K blocks, N blocks] for each position of a kernel, for all channels of its groups; a matrix has
        one position."""
        key = (weights, groups)
        if key not in self._cut:
            data, node = self.data(weights), self.device[weights]
            self._cut[key] = [self.tile_pool.add(node, block_diagonal(matrix, groups)) for matrix in data.reshape(-1, *data.shape[-2:])]
        return self._cut[key]

    def written_tiles(self, weights: Node) -> tuple[Int64, tuple[TileWrite, ...]]:
        """The indices [matrices, K blocks, N blocks] of the tiles of weights [..., K, N] that the host computes, and the writes of these
        tiles. Layers with the same weights share tiles."""
        if weights.name not in self._reserved:
            *lead, depth, width = weights.type.shape
            mxu, tensor = self.mxu, self._values[weights.name].tensor
            tiles = self.tile_pool.reserve(weights, prod(lead), depth, width)
            writes = tuple(
                TileWrite(int(tile), tensor, n, matrix * depth + k * mxu, min(mxu, depth - k * mxu))
                for (matrix, k, n), tile in np.ndenumerate(tiles)
            )
            self._reserved[weights.name] = tiles, writes
        return self._reserved[weights.name]

    def parameter_blocks(self, epilogue: Epilogue, constants: Sequence[str]) -> tuple[int, ...]:
        """The index of the parameter block of each column block of a product's result. The constants are bias, multiplier and perhaps a
        table."""
        bias, multiplier, *table = (self.data(name) for name in constants)
        return self.parameter_block_pool.product(epilogue, bias, multiplier, table[0] if table else None)

    def surrounded(self, name: str, sides: Sides) -> Access:
        """The value with a border that is at least as wide as `sides`: the value itself, or a copy."""
        value = self._values[name]
        own = value.tensor.sides
        if sides == NO_SIDES or (wider(own, sides) == own and value == whole(value.tensor)):
            return value
        key = (name, sides)
        if key not in self._surrounded:
            self._surrounded[key] = self._copied(self.device[name], value, sides).tensor
        return whole(self._surrounded[key])

    def fill(self, value: int, rows: Access) -> Region:
        """The region that puts one value into all lanes of the rows."""
        return copied(whole(self._row(value)).broadcast(rows.shape), rows)

    def _shown(self, node: Node) -> Access:
        match node.attributes:
            case ConstantAttributes(value):
                return whole(Tensor(node.name, node.type, data=value.data))
            case SliceAttributes(squeeze=squeeze) as part:
                return self._values[node.operands[0]].taken(part.ranges[:-1], squeeze)
            case TransposeAttributes(perm):
                return self._values[node.operands[0]].transposed([axis % len(perm) for axis in perm[:-1]])
        return whole(Tensor(node.name, node.type, is_input=True)) if node.is_input else self._regrouped(node)

    def _regrouped(self, node: Node) -> Access:
        """The value of a reshape: another access to the operand's rows, or to a copy where no access visits them in this order."""
        source = self.device[node.operands[0]]
        if not isinstance(legalisation_of(node.op), View) or (source.type.rows, source.type.columns) != (node.type.rows, node.type.columns):
            message = f"{node.name} shows {source.type.brief} as {node.type.brief}, which moves data between rows"
            raise InternalError(Diagnostic("E0904", message))
        value = self._values[source.name]
        shown = value.reshaped(node.type.shape[:-1]) or self._copied(source, value).reshaped(node.type.shape[:-1])
        assert shown is not None
        return shown

    def _copied(self, node: Node, value: Access, sides: Sides = NO_SIDES) -> Access:
        """A copy of a value on rows of its own."""
        name = f"{node.name}{COPY_MARK}{len(self.steps)}"
        copy = whole(Tensor(name, node.type, sides=sides))
        why = "a copy with a border of zero points" if sides != NO_SIDES else "a copy whose rows are in order"
        work = Moving(regions=(copied(value, copy),), why=why)
        self.steps.append(Step(name, node.origin, copy, work, tuple(self._border_fills(copy.tensor)), self._segment))
        return copy

    def _border_fills(self, tensor: Tensor) -> Iterator[Region]:
        """The regions that put the zero point into the rows of the border."""
        if tensor.sides != NO_SIDES:
            assert tensor.type.quantisation is not None, f"{tensor.name} has no zero point"
            for rows in border_rows(tensor):
                yield self.fill(tensor.type.quantisation.zero_point, rows)

    def _row(self, value: int) -> Tensor:
        """A constant row of one value in all lanes."""
        if value not in self._rows:
            data = np.full((1, self.mxu), value, self.format.numpy)
            self._rows[value] = Tensor(f"{ROW_MARK}{value}", TensorType(self.format.name, data.shape), data=data)
        return self._rows[value]


def block_diagonal(matrix: AnyArray, groups: int) -> AnyArray:
    """The matrix [C, F] of a kernel position, from the matrix [C / groups, F] of its groups: zeros stand between different groups."""
    if groups == 1:
        return matrix
    depth, width = matrix.shape
    whole = np.zeros((groups, depth, groups, width // groups), matrix.dtype)
    each = np.arange(groups)
    whole[each, :, each] = matrix.reshape(depth, groups, -1).swapaxes(0, 1)
    return whole.reshape(groups * depth, width)


def format_of(device: Graph) -> DeviceFormat:
    """The integer format of a device graph: all its values have the same."""
    held = (node.type.dtype for node in device if is_layer(node) or node.is_input)
    return DEVICE_FORMATS[next(held, DEFAULT_FORMAT.name)]
