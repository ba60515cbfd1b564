"""Pooling layers."""

from __future__ import annotations

from tpucc.ir.graph import Node
from tpucc.ir.types import Quantisation
from tpucc.layers.kinds import Pool, Requantise
from tpucc.layers.parameters import scaling
from tpucc.ops import facts_of
from tpucc.ops.axis import sides
from tpucc.passes.layering.graph import LayerGraph, parameters_of, reshaped


def pool(layers: LayerGraph, node: Node, function: str) -> Node:
    """The layer of max_pool, avg_pool or global_avg_pool. A maximum is one of its operands, and held as they are."""
    x = layers.for_device(node.operands[0])
    held, image = parameters_of(x), x.type.shape
    windows = facts_of(node.op).windows
    assert windows is not None
    height, width = windows(node.attributes, (image,))
    y = held if function == "max" else layers.quantisation_of(node)
    attributes = Pool(
        function,
        (height.window, width.window),
        (height.stride, width.stride),
        sides(height, width),
        _epilogue(function, held, y),
    )
    shape = (image[0], height.outputs, width.outputs, image[3])
    made = layers.layer(node, "pool", (x.name,), attributes, y, shape=shape)
    return made if shape == node.type.shape else reshaped(layers, node, made)


def _epilogue(function: str, x: Quantisation, y: Quantisation) -> Requantise | None:
    return None if function == "max" else Requantise(y.zero_point, scales=(scaling(x.scale, 1.0, y.scale),), zeros=(x.zero_point,))
