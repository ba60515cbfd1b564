"""Each operator as a layer of the device: which family it belongs to."""

from __future__ import annotations

from typing import assert_never

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.ir import Node
from tpucc.layers.kinds import Pool, PoolFunction, Requantise
from tpucc.layers.parameters import scaling
from tpucc.ops import OPS, facts_of
from tpucc.ops.axis import counted, sides
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Given, Matrix, OnHost, Pooling, Rearrangement, Table, View
from tpucc.passes.layering.elementwise import arithmetic, boundary, clamp, function, requantised
from tpucc.passes.layering.graph import LayerGraph, parameters_of, reshaped
from tpucc.passes.layering.products import product
from tpucc.passes.layering.rearranging import rearranged


def layer(layers: LayerGraph, node: Node) -> Node:
    """Adds the layer of an operator; returns the int8 node that holds its result.

    Raises `UnfitError` when no parameters fit, `ProgramError` E0806 for a graph that isn't ready.
    """
    made = _computed(layers, node)
    fixed = node.type.quantisation or parameters_of(made)
    return requantised(layers, node, made, fixed)


def _computed(layers: LayerGraph, node: Node) -> Node:
    legalisation = OPS[node.op].legalisation
    match legalisation:
        case Matrix():
            return product(layers, node)
        case Pooling(kind):
            return _pool(layers, node, PoolFunction(kind))
        case Table(real):
            return function(layers, node, lambda x: real(node.attributes, x))
        case Clamp(bounds):
            return clamp(layers, node, *bounds(node.attributes))
        case Arithmetic():
            return arithmetic(layers, node)
        case View():
            return reshaped(layers, node, layers.for_device(node.operands[0]))
        case Rearrangement():
            return rearranged(layers, node)
        case Boundary():
            return boundary(layers, node)
        case OnHost() | Given():
            raise ProgramError(Diagnostic("E0806", f"{node.name} was placed on the device, which has no {node.op}"))
        case _:
            assert_never(legalisation)


def _pool(layers: LayerGraph, node: Node, function: PoolFunction) -> Node:
    """The layer of max_pool, avg_pool or global_avg_pool. A maximum is one of its operands, and held as they are."""
    x = layers.for_device(node.operands[0])
    held, image = parameters_of(x), x.type.shape
    windows = facts_of(node.op).windows
    assert windows is not None
    height, width = windows(node.attributes, (image,))
    y = held if function == PoolFunction.MAX else layers.quantisation_of(node)
    attributes = Pool(
        function,
        (height.window, width.window),
        (height.stride, width.stride),
        sides(height, width),
        None
        if function == PoolFunction.MAX
        else Requantise(y.zero_point, scales=(scaling(held.scale, 1.0, y.scale),), zeros=(held.zero_point,)),
        counted(height, width),
    )
    shape = (image[0], height.outputs, width.outputs, image[3])
    made = layers.layer(node, (x,), attributes, y, shape=shape)
    return made if shape == node.type.shape else reshaped(layers, node, made)
