"""Lowering the layers that the vector unit computes: pools and depthwise convolutions, functions of elements, and copies of rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from tpucc.ir import Node
from tpucc.layers.kinds import Conv, Move, MoveFunction, Pool, Vector, looks_up
from tpucc.lowering.steps import LaneByLane, Moving, Region, copied
from tpucc.lowering.tensors import Access, padding_rows
from tpucc.lowering.values import LoweredValues
from tpucc.machines.v1 import Function


def lower_pool(node: Node, layer: Pool, y: Access, values: LoweredValues) -> LaneByLane:
    """The step of a pool: v [B, H, W, C] → y [B, H', W', C], channel by channel.

    Pixels outside the image don't count, so windows at its edges see fewer pixels than others. Neighbours whose windows have one shape are
    one *region*: a rectangle of y, whose averages divide by the same number and so have one parameter block.
    """
    x, function = values[node.operands[0]], Function[layer.function.upper()]
    around = (layer.counted[:2], layer.counted[2:])
    windows = zip(x.shape[1:], layer.size, layer.stride, layer.sides[::2], y.shape[1:], around, strict=True)
    down, across = (window_runs(*numbers) for numbers in windows)
    regions = []
    for rows in down:
        for columns in across:
            outputs = (rows.outputs, columns.outputs)
            first = x.windows((rows.pixel, columns.pixel), layer.stride, outputs)
            part = y.sliced((0, rows.first, columns.first), (y.shape[0], rows.first + outputs[0], columns.first + outputs[1]))
            parameter_blocks: tuple[int, ...] = ()
            if layer.epilogue is not None:
                block = values.parameter_block_pool.average(layer.epilogue, rows.counted * columns.counted)
                parameter_blocks = (block,) * y.tensor.column_blocks(values.mxu)
            regions.append(Region(function, (first,), part, parameter_blocks, (rows.pixels, columns.pixels), (x.steps[1], x.steps[2])))
    return LaneByLane("pool", tuple(regions))


@dataclass(frozen=True, slots=True)
class WindowRun:
    """Consecutive windows that see equally many pixels, one stride apart.

    `first` of the `outputs` windows is the first; its first real pixel is `pixel`. Each sees `pixels`, and an average divides by `counted`.
    """

    first: int
    outputs: int
    pixel: int
    pixels: int
    counted: int


def window_runs(size: int, window: int, stride: int, before: int, outputs: int, counted: tuple[int, int] = (0, 0)) -> list[WindowRun]:
    """The windows over an axis of `size` pixels with `before` pixels of padding in front; windows see real pixels only. An average also
    counts `counted` pixels of padding before and after the real ones."""
    spans = []
    for output in range(outputs):
        start = output * stride - before
        first, last = max(0, start), min(size, start + window)
        spans.append((output, first, last - first, min(size + counted[1], start + window) - max(-counted[0], start)))
    alike = groupby(spans, key=lambda span: (span[1] - span[0] * stride, *span[2:]))
    return [WindowRun(found[0][0], len(found), *found[0][1:]) for found in (list(group) for _, group in alike)]


def lower_depthwise(node: Node, layer: Conv, y: Access, values: LoweredValues) -> LaneByLane:
    """The step of a depthwise convolution on the vector unit: each lane of a window of x times the same lane of w [R, S, 1, F].

    It is a pooling whose windows are weighted. The weights are a buffer with a row for each position of the kernel.
    """
    x, (top, _, left, _) = values.surrounded(node.operands[0], layer.sides), layer.sides
    height, width = values.device[node.operands[1]].type.shape[:2]
    parameter_blocks = values.parameter_blocks(layer.epilogue, node.operands[2:])  # numbers [F blocks]
    (down, across), first = layer.dilation, x.windows((-top, -left), layer.stride, (y.shape[1], y.shape[2]))
    weights = values[node.operands[1]].reshaped((1, height * width))
    assert weights is not None  # a constant's rows are in order
    weights = weights.broadcast((y.shape[0], height * width))
    apart = x.steps[1] * down, x.steps[2] * across
    return LaneByLane("conv", (Region(Function.WEIGHTED, (first,), y, parameter_blocks, (height, width), apart, weights),))


def lower_vector(node: Node, layer: Vector, y: Access, values: LoweredValues) -> LaneByLane:
    """The step of a function of one value or two, v [..., C], whose shapes broadcast to the shape of y, v [..., C].

    Leading sizes of 1 take no step, so that their rows are read again. An operand with one column gives its lane 0 to all lanes of y.
    """
    names = node.operands[:-1] if looks_up(layer) else node.operands
    table = values.data(node.operands[-1]) if looks_up(layer) else None
    block = values.parameter_block_pool.element_wise(layer.epilogue, table)
    operands = tuple(values[name].broadcast(y.shape) for name in names)
    region = Region(Function[layer.function.upper()], operands, y, (block,) * y.tensor.column_blocks(values.mxu))
    return LaneByLane("vector", (region,))


def lower_move(node: Node, layer: Move, y: Access, values: LoweredValues) -> Moving:
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
