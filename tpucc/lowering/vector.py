"""Lowering an element-wise layer."""

from __future__ import annotations

from tpucc.ir.node import Node
from tpucc.layers.kinds import Vector, looks_up
from tpucc.lowering.steps import LaneByLane, Region
from tpucc.lowering.tensors import Access
from tpucc.lowering.values import Values
from tpucc.machines.v1 import Function


def lower_vector(node: Node, layer: Vector, y: Access, values: Values) -> LaneByLane:
    """The step of a function of one value or two, v [..., C], whose shapes broadcast to y's: v [..., C].

    Leading sizes of 1 take no step, so that their rows are read again. An operand with one column gives its lane 0 to all lanes of y.
    """
    names = node.operands[:-1] if looks_up(layer) else node.operands
    table = values.data(node.operands[-1]) if looks_up(layer) else None
    block = values.blocks.element_wise(layer.epilogue, table)
    operands = tuple(values[name].broadcast(y.shape) for name in names)
    region = Region(Function[layer.function.upper()], operands, y, (block,) * y.tensor.blocks(values.mxu))
    return LaneByLane("vector", (region,))
