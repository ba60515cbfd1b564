"""Lowering a pooling layer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from tpucc.ir.node import Node
from tpucc.layers.kinds import Pool
from tpucc.lowering.steps import LaneByLane, Region
from tpucc.lowering.tensors import Access
from tpucc.lowering.values import Values
from tpucc.machines.v1 import Function


def lower_pool(node: Node, layer: Pool, y: Access, values: Values) -> LaneByLane:
    """The step of a pool: v [B, H, W, C] → y [B, H', W', C], channel by channel.

    Pixels outside the image don't count, so windows at its edges see fewer pixels than others. Neighbours whose windows have one shape are
    one *region*: a rectangle of y, whose averages divide by the same number and so have one parameter block.
    """
    x, function = values[node.operands[0]], Function[layer.function.upper()]
    around = (layer.counted[:2], layer.counted[2:])
    windows = zip(x.shape[1:], layer.size, layer.stride, layer.sides[::2], y.shape[1:], around, strict=True)
    down, across = (runs(*numbers) for numbers in windows)
    regions = []
    for rows in down:
        for columns in across:
            outputs = (rows.outputs, columns.outputs)
            first = x.windows((rows.pixel, columns.pixel), layer.stride, outputs)
            part = y.sliced((0, rows.first, columns.first), (y.shape[0], rows.first + outputs[0], columns.first + outputs[1]))
            blocks: tuple[int, ...] = ()
            if layer.epilogue is not None:
                blocks = (values.blocks.average(layer.epilogue, rows.counted * columns.counted),) * y.tensor.blocks(values.mxu)
            regions.append(Region(function, (first,), part, blocks, (rows.pixels, columns.pixels), (x.steps[1], x.steps[2])))
    return LaneByLane("pool", tuple(regions))


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive windows that see equally many pixels, one stride apart.

    `first` of the `outputs` windows is the first; its first real pixel is `pixel`. Each sees `pixels`, and an average divides by `counted`.
    """

    first: int
    outputs: int
    pixel: int
    pixels: int
    counted: int


def runs(size: int, window: int, stride: int, before: int, outputs: int, counted: tuple[int, int] = (0, 0)) -> list[Run]:
    """The windows over an axis of `size` pixels with `before` of padding in front; only real pixels are seen. So many pixels before and
    after the real ones are `counted`."""
    spans = []
    for output in range(outputs):
        start = output * stride - before
        first, last = max(0, start), min(size, start + window)
        spans.append((output, first, last - first, min(size + counted[1], start + window) - max(-counted[0], start)))
    alike = groupby(spans, key=lambda span: (span[1] - span[0] * stride, *span[2:]))
    return [Run(found[0][0], len(found), *found[0][1:]) for found in (list(group) for _, group in alike)]
