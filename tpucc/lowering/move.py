"""Lowering a layer that only moves rows."""

from __future__ import annotations

from typing import assert_never

from tpucc.ir.node import Node
from tpucc.layers.kinds import Move, MoveFunction
from tpucc.lowering.steps import Moving, copied
from tpucc.lowering.tensors import Access, padding_rows
from tpucc.lowering.values import Values


def lower_move(node: Node, layer: Move, y: Access, values: Values) -> Moving:
    """The step of a join of v [..., C] along an axis of rows, or of padding rows of one value around v [..., C]; y is v [..., C]."""
    operands = [values[name] for name in node.operands]
    match layer.function:
        case MoveFunction.PAD:
            inner = [(before, size - after) for size, (before, after) in zip(y.shape, layer.pads, strict=False)]
            fills = (values.fill(layer.value, rows) for rows in padding_rows(y, layer.pads[:-1]))
            return Moving(regions=(*fills, copied(operands[0], y.sliced(*zip(*inner, strict=True)))))
        case MoveFunction.CONCAT:
            copies, at = [], 0
            for value in operands:
                first, last = [0] * len(y.shape), list(y.shape)
                first[layer.axis], last[layer.axis] = at, at + value.shape[layer.axis]
                at = last[layer.axis]
                copies.append(copied(value, y.sliced(first, last)))
            return Moving(regions=tuple(copies))
        case _:
            assert_never(layer.function)
