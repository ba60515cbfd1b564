"""Sizes of layers, as lowering, statistics and pictures count them."""

from __future__ import annotations

from math import prod

from tpucc.ir.graph import Graph, Node
from tpucc.layers.kinds import Conv, Fc, Layer


def is_layer(node: Node) -> bool:
    """Whether the node is the device's: one of `tpucc.layers.kinds`."""
    return isinstance(node.attributes, Layer)


def weight_shape(node: Node, graph: Graph) -> tuple[int, int]:
    """K and N of a layer's weights, over all sources and kernel positions; zeros when it has none."""
    match node.attributes:
        case Fc(sources=count):
            shapes = [graph[name].type.shape for name in node.operands[count : 2 * count]]
            return sum(depth for depth, _ in shapes), shapes[0][1]
        case Conv():
            shape = graph[node.operands[1]].type.shape
            return prod(shape[:3]), shape[3]
    return (0, 0)


def macs(node: Node, graph: Graph) -> int:
    """Multiply-accumulates that the model asks for, padding of tiles not counted: rows · K · N of a product, none of another layer."""
    if isinstance(node.attributes, Fc) and node.attributes.moves:
        return 0
    inputs, outputs = weight_shape(node, graph)
    return node.type.rows * inputs * outputs
