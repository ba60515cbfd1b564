"""Lowering a convolution on the matrix unit."""

from __future__ import annotations

from tpucc.ir import Node
from tpucc.layers.kinds import Conv
from tpucc.lowering.steps import Level, Product
from tpucc.lowering.tensors import Access
from tpucc.lowering.tiled_product import product_of
from tpucc.lowering.values import LoweredValues


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
