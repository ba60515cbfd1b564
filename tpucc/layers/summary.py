"""Sizes of layers, as lowering, statistics and pictures count them."""

from __future__ import annotations

from tpucc.ir.graph import Graph, Node
from tpucc.layers.kinds import Fc, Layer


def is_layer(node: Node) -> bool:
    """Whether the node is the device's: one of `tpucc.layers.kinds`."""
    return isinstance(node.attributes, Layer)


def weight_shape(node: Node, graph: Graph) -> tuple[int, int]:
    """K and N of a layer's weights; zeros when it has none."""
    if not isinstance(node.attributes, Fc):
        return (0, 0)
    inputs, outputs = graph[node.operands[1]].type.shape
    return inputs, outputs


def macs(node: Node, graph: Graph) -> int:
    """Multiply-accumulates that the model asks for, padding not counted: rows · K · N of a product, none of a vector layer."""
    inputs, outputs = weight_shape(node, graph)
    return node.type.rows * inputs * outputs
