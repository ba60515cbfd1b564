"""Lowering a fully connected layer: begin to read here. A convolutional layer follows."""

from __future__ import annotations

from math import prod

import numpy as np

from tpucc.ir import Node
from tpucc.layers.kinds import Conv, Fc, is_written
from tpucc.lowering.steps import Level, Product, Step, WrittenProducts
from tpucc.lowering.tensors import Access
from tpucc.lowering.tiled_product import product_of
from tpucc.lowering.values import LoweredValues


def lower_fc(node: Node, layer: Fc, y: Access, values: LoweredValues) -> Product | WrittenProducts:
    """The step of `y = epilogue(x @ w + bias)`: x is v [..., K], w int8 [K, N], bias int32 [N], y v [..., N]. v is the number
    format of the graph's values, int8 or int16 (see `tpucc.layers.kinds`).

    - *Tiles*: w is cut into tiles [mxu, mxu]. Tile (k, n) has rows k · mxu… and columns n · mxu… of w, and zeros where w ends in it.
    - *Buffers*: x and y are column blocks. Buffer k of x has the lanes k · mxu… of all rows of x, one row of mxu bytes for each.
    - *Levels*: buffer n of y is the sum over k of buffer k of x times tile (k, n). Each k is a level of that sum.
    - *Parameter blocks*: column block n of y has its own bias, multipliers, clamp and table.

    Of a layer with several sources, x_i and w_i, the levels of all add up. `emit_product` writes the instructions, for each part of the
    batch: then it is known how many rows a part has, and where its buffers are.
    """
    count = layer.sources
    xs, weights, constants = node.operands[:count], node.operands[count : 2 * count], node.operands[2 * count :]
    if is_written(values.device[weights[0]]):
        return _by_written_weights(node, layer, y, values)
    levels = []
    for x, w in zip(xs, weights, strict=True):
        tiles = values.weight_tiles(w)[0]  # the numbers of tiles [K blocks, N blocks]
        levels += [Level(values[x], k, tuple(row)) for k, row in enumerate(tiles.tolist())]
    parameter_blocks = values.parameter_blocks(layer.epilogue, constants)  # the numbers of blocks [N blocks]
    return product_of(node, levels, parameter_blocks, values)


def _by_written_weights(node: Node, layer: Fc, y: Access, values: LoweredValues) -> WrittenProducts:
    """The step of a product by w [..., K, N] that the host computes: the device writes the tiles of all matrices to weight memory, and then
    multiplies the rows of each matrix by it. Leading sizes of w broadcast to those of x [..., M, K]."""
    x, weights = values[node.operands[0]], values.device[node.operands[1]]
    lead = weights.type.shape[:-2]
    tiles, writes = values.written_tiles(weights)
    parameter_blocks = values.parameter_blocks(layer.epilogue, node.operands[2:])

    def part(rows: Access, matrix: int, result: Access) -> Step:
        levels = [Level(rows, k, tuple(row)) for k, row in enumerate(tiles[matrix].tolist())]
        return values.part(node, result, product_of(node, levels, parameter_blocks, values))

    if not lead:
        return WrittenProducts(writes, (part(x, 0, y),))
    around = y.shape[:-1]
    source, matrices = x.broadcast(y.shape), np.broadcast_to(np.arange(prod(lead)).reshape(lead), around)
    parts = (part(_rows_at(source, index), int(matrices[index]), _rows_at(y, index)) for index in np.ndindex(*around))
    return WrittenProducts(writes, tuple(parts))


def _rows_at(value: Access, index: tuple[int, ...]) -> Access:
    """The rows [M] of a value [..., M] at an index of its leading sizes."""
    places = (*(range(at, at + 1) for at in index), range(value.shape[-1]))
    return value.taken(places, tuple(range(len(index))))


# Lowering a convolution on the matrix unit.


def lower_conv(node: Node, layer: Conv, y: Access, values: LoweredValues) -> Product:
    """The step of a convolution of x, v [B, H, W, C], by w, int8 [R, S, C / groups, F], to y, v [B, H', W', F].

    For each position (r, s) of the kernel, w[r, s] is a matrix that the pixels under this position are multiplied by: one pixel for each
    window, all `stride` apart. The sum over all positions is the convolution. So it is a product as that of `lower_fc`, with a level for
    each position and each column block of x; no window is ever copied. Around the image lie the pixels of its border.
    """
    x, (top, _, left, _) = values.surrounded(node.operands[0], layer.sides), layer.sides
    width, outputs, (down, across) = values.device[node.operands[1]].type.shape[1], (y.shape[1], y.shape[2]), layer.dilation
    levels = []
    for position, tiles in enumerate(values.weight_tiles(node.operands[1], layer.groups)):  # numbers [C blocks, F blocks]
        r, s = divmod(position, width)
        pixels = x.windows((r * down - top, s * across - left), layer.stride, outputs)
        levels += [Level(pixels, block, tuple(row)) for block, row in enumerate(tiles.tolist())]
    parameter_blocks = values.parameter_blocks(layer.epilogue, node.operands[2:])  # numbers [F blocks]
    return product_of(node, levels, parameter_blocks, values)
