"""What each layer computes, written as plainly as it can be: the integer answer that the machine must give, bit for bit.

It shares no code with the simulator but the scalar rules of `tpucc.numerics` (round, saturate, requantise): no tiles, no rows, no
instructions. Products are exact: int8 operands are widened to float64, in which every sum of fewer than 2^38 of their products is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tpucc.ir.graph import Node
from tpucc.layers.kinds import Fc, Vector
from tpucc.numerics import AnyArray, Float32, Int8, Int64, requantise, saturate

TABLE_OFFSET = 128
"""A table's first entry is that of the value -128."""


def compute(node: Node, operands: Sequence[AnyArray]) -> Int8:
    """The result of a layer, int8 of the node's shape, from the operands that `tpucc.layers.kinds` lists.

    Raises `OverflowError` when a sum doesn't fit the int32 accumulators, which `verify_layers` rules out, and `TypeError` for a node
    that is no layer.
    """
    match node.attributes:
        case Fc():
            return fully_connected(node.attributes, *operands)
        case Vector(function="table"):
            return np.asarray(look_up(operands[1], operands[0]).reshape(node.type.shape))
        case Vector():
            return element_wise(node.attributes, *operands)
    raise TypeError(f"{node.name} is no layer but {node.op}")


def fully_connected(layer: Fc, x: Int8, weights: Int8, bias: AnyArray, multiplier: Float32, table: Int8 | None = None) -> Int8:
    """x [..., K], weights [K, N], bias int32 [N], multiplier float32 [N] → int8 [..., N]."""
    rows = x.reshape(-1, x.shape[-1])
    sums = rows.astype(np.float64) @ weights.astype(np.float64) + bias
    values = requantise(_int32(sums.astype(np.int64)), multiplier, layer.zero, layer.low, layer.high)
    return _through(table, values.reshape(*x.shape[:-1], weights.shape[1]))


def element_wise(layer: Vector, a: Int8, b: Int8, table: Int8 | None = None) -> Int8:
    """a and b int8, of shapes that broadcast → int8 of their common shape. Every step is rounded to float32, in this order."""
    left = a.astype(np.float32) - np.float32(layer.zero_a)
    right = b.astype(np.float32) - np.float32(layer.zero_b)
    match layer.function:
        case "add":
            real = np.float32(layer.scale_a) * left + np.float32(layer.scale_b) * right
        case "subtract":
            real = np.float32(layer.scale_a) * left - np.float32(layer.scale_b) * right
        case "multiply":
            real = np.float32(layer.scale_a) * (left * right)
        case other:
            raise TypeError(f"no vector function is named {other}")
    return _through(table, saturate(np.rint(real), layer.zero, layer.low, layer.high))


def look_up(table: Int8, values: Int8) -> Int8:
    """The table's entry of each value: entry 0 is that of -128."""
    return table[values.astype(np.intp) + TABLE_OFFSET]


def _through(table: Int8 | None, values: Int8) -> Int8:
    return values if table is None else look_up(table, values)


def _int32(sums: Int64) -> AnyArray:
    limits = np.iinfo(np.int32)
    if sums.size and not limits.min <= sums.min() <= sums.max() <= limits.max:
        raise OverflowError("a sum doesn't fit the int32 accumulators")
    return sums.astype(np.int32)


LAYER_REFERENCES: Mapping[str, Callable[[Node, Sequence[AnyArray]], AnyArray]] = MappingProxyType({"fc": compute, "vector": compute})
"""The reference of each layer by its operator's name: what `tpucc.ops` lacks to evaluate a layer graph."""
