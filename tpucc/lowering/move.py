"""Lowering a layer that only moves rows."""

from __future__ import annotations

from typing import assert_never

from tpucc.ir.node import Node
from tpucc.layers.kinds import Move, MoveFunction
from tpucc.lowering.emission import Emission
from tpucc.lowering.steps import Copy, Moving
from tpucc.lowering.tensors import Access, padding_rows
from tpucc.lowering.values import Values


def lower_move(node: Node, layer: Move, y: Access, values: Values) -> Moving:
    """The step of a join of v [..., C] along an axis of rows, or of padding rows of one value around v [..., C]; y is v [..., C]."""
    operands = [values[name] for name in node.operands]
    match layer.function:
        case MoveFunction.PAD:
            inner = [(before, size - after) for size, (before, after) in zip(y.shape, layer.pads, strict=False)]
            fills = (values.fill(layer.value, rows) for rows in padding_rows(y, layer.pads[:-1]))
            return Moving((*fills, Copy(operands[0], y.sliced(*zip(*inner, strict=True)))))
        case MoveFunction.CONCAT:
            copies, at = [], 0
            for value in operands:
                first, last = [0] * len(y.shape), list(y.shape)
                first[layer.axis], last[layer.axis] = at, at + value.shape[layer.axis]
                at = last[layer.axis]
                copies.append(Copy(value, y.sliced(first, last)))
            return Moving(tuple(copies))
        case _:
            assert_never(layer.function)


def emit_move(work: Moving, at: Emission) -> None:
    """The copies, and then the outputs that y is. An output that the host gave has no copies: it is read, and so written."""
    for copy in work.copies:
        at.copy(copy)
    for y in at.results:
        if work.copies:
            at.complete(y)
        else:
            at.emitter.require(y)
