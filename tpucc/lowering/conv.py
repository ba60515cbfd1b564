"""Lowering a convolution, on the matrix unit or on the vector unit."""

from __future__ import annotations

from tpucc.ir.node import Node
from tpucc.layers.kinds import Conv
from tpucc.lowering.steps import LaneByLane, Level, Product, Region
from tpucc.lowering.tensors import Access
from tpucc.lowering.tiled_product import product_of
from tpucc.lowering.values import Values
from tpucc.machines.v1 import Function


def lower_conv(node: Node, layer: Conv, y: Access, values: Values) -> Product:
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
    blocks = values.parameter_blocks(layer.epilogue, node.operands[2:])  # numbers [F blocks]
    return product_of(node, levels, blocks, values)


def lower_depthwise(node: Node, layer: Conv, y: Access, values: Values) -> LaneByLane:
    """The step of a depthwise convolution on the vector unit: each lane of a window of x times the same lane of w [R, S, 1, F].

    It is a pooling whose windows are weighted. The weights are a buffer with a row for each position of the kernel.
    """
    x, (top, _, left, _) = values.surrounded(node.operands[0], layer.sides), layer.sides
    height, width = values.device[node.operands[1]].type.shape[:2]
    blocks = values.parameter_blocks(layer.epilogue, node.operands[2:])  # numbers [F blocks]
    (down, across), first = layer.dilation, x.windows((-top, -left), layer.stride, (y.shape[1], y.shape[2]))
    weights = values[node.operands[1]].reshaped((1, height * width))
    assert weights is not None  # a constant's rows are in order
    weights = weights.broadcast((y.shape[0], height * width))
    apart = x.steps[1] * down, x.steps[2] * across
    return LaneByLane("conv", (Region(Function.WEIGHTED, (first,), y, blocks, (height, width), apart, weights),))
