"""Transposed convolutions: a convolution of the image for each phase of the stride, whose pixels are then put between one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tpucc.ir import Node
from tpucc.layers.kinds import Move, MoveFunction, Sides
from tpucc.numerics import Int8
from tpucc.ops.axis import Axis, sides
from tpucc.ops.reshape import ReshapeAttributes
from tpucc.ops.slice import SliceAttributes
from tpucc.passes.layering.graph import LayerGraph, parameters_of

Phase = tuple[slice | None, Axis]
"""The kernel positions that meet the pixels of a phase, None if none does, and the image's axis under windows of these."""
Convolve = Callable[[Node, Int8, Sides], Node]
"""Makes the layer of a convolution of an image with a kernel, padded on its sides."""


def interleaved(layers: LayerGraph, node: Node, x: Node, weights: Int8, axes: tuple[Axis, Axis], convolve: Convolve) -> Node:
    """The value of a transposed convolution of `x` with `weights` [R, S, C, F].

    `axes` are those of the result under the windows of x's pixels.
    """
    height, width = axes
    lines = []
    for down in _phases(height):
        columns = [_phase(layers, node, x, weights, (down, across), convolve) for across in _phases(width)]
        lines.append(_between(layers, node, columns, 2))
    whole = _between(layers, node, lines, 1)
    if whole.type.shape == node.type.shape:
        return whole
    starts, stops = (0,) * 4, node.type.shape
    return layers.layer(node, (whole,), SliceAttributes(starts, stops), parameters_of(whole))


def _phases(axis: Axis) -> list[Phase]:
    """The phases of the result in the order of their first pixels, each of as many pixels as the largest has."""
    count = -(-axis.size // axis.stride)
    more = count * axis.stride - axis.size
    alike = replace(axis, size=axis.size + more, after=axis.after - more)
    found: dict[int, Phase] = {pixels.start: (kernel, image) for pixels, kernel, image in alike.phases() if _sees(image)}
    nothing = (None, Axis(axis.outputs, 1, 1, 0, count - axis.outputs))
    return [found.get(first, nothing) for first in range(axis.stride)]


def _seen(image: Axis) -> tuple[int, int]:
    """The pixels that windows see: the padding may be negative."""
    return max(0, -image.before), image.size - max(0, -image.after)


def _sees(image: Axis) -> bool:
    start, stop = _seen(image)
    return start < stop


def _phase(layers: LayerGraph, node: Node, x: Node, weights: Int8, phases: tuple[Phase, Phase], convolve: Convolve) -> Node:
    """The convolution of one phase: of zeros where no position of the kernel meets its pixels."""
    (r, lines), (s, beside) = phases
    met = r is not None and s is not None
    kernel = weights[r, s] if met else np.zeros((lines.window, beside.window, *weights.shape[2:]), weights.dtype)
    part = _part(layers, node, x, (_seen(lines), _seen(beside)))
    top, bottom, left, right = (max(0, side) for side in sides(lines, beside))
    return convolve(part, kernel, (top, bottom, left, right))


def _part(layers: LayerGraph, node: Node, x: Node, seen: Sequence[tuple[int, int]]) -> Node:
    """The pixels of x that a phase meets."""
    bounds = ((0, x.type.shape[0]), *seen, (0, x.type.shape[3]))
    starts, stops = zip(*bounds, strict=True)
    shape = tuple(stop - start for start, stop in bounds)
    if shape == x.type.shape:
        return x
    return layers.layer(node, (x,), SliceAttributes(starts, stops), parameters_of(x), name=x.name, shape=shape)


def _between(layers: LayerGraph, node: Node, values: Sequence[Node], axis: int) -> Node:
    """Values [N, H, W, F], the elements of the second between those of the first along `axis`, and so on."""
    first = values[0]
    if len(values) == 1:
        return first
    shape, held = first.type.shape, parameters_of(first)
    apart = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    views = [layers.layer(node, (value,), ReshapeAttributes(apart), held, shape=apart) for value in values]
    joined = (*shape[: axis + 1], len(values), *shape[axis + 1 :])
    made = layers.layer(node, views, Move(MoveFunction.CONCAT, axis + 1), held, shape=joined)
    together = (*shape[:axis], shape[axis] * len(values), *shape[axis + 1 :])
    return layers.layer(node, (made,), ReshapeAttributes(together), held, shape=together)
