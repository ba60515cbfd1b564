"""The shapes of layers' results; None where operands and attributes don't fit."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.layers.kinds import Conv, Move, Pool, Sides

Shape = tuple[int, ...]


def conv_shape(layer: Conv, x: Shape, weights: Shape) -> Shape | None:
    """x [B, H, W, C] under a kernel [R, S, C, F]."""
    if len(x) != 4 or len(weights) != 4 or x[3] != weights[2]:
        return None
    spatial = outputs(x, (weights[0], weights[1]), layer.stride, layer.sides)
    return None if spatial is None else (x[0], *spatial, weights[3])


def pool_shape(layer: Pool, x: Shape) -> Shape | None:
    """x [B, H, W, C]. No window may lie outside the image: padding is smaller than the window."""
    if len(x) != 4 or any(side >= layer.size[place // 2] for place, side in enumerate(layer.sides)):
        return None
    spatial = outputs(x, layer.size, layer.stride, layer.sides)
    return None if spatial is None else (x[0], *spatial, x[3])


def outputs(x: Shape, window: tuple[int, int], stride: tuple[int, int], sides: Sides) -> tuple[int, int] | None:
    """Rows and columns of windows in the images x [B, H, W, C] with `sides` around them."""
    room = x[1] + sides[0] + sides[1] - window[0], x[2] + sides[2] + sides[3] - window[1]
    if min(*room) < 0 or min(*stride, *window) < 1 or min(sides) < 0:
        return None
    return room[0] // stride[0] + 1, room[1] // stride[1] + 1


def move_shape(layer: Move, shapes: Sequence[Shape]) -> Shape | None:
    """Operands joined along an axis that isn't the last, or one with rows around it."""
    first = shapes[0]
    if layer.function == "pad":
        if len(layer.pads) != len(first) or not first or layer.pads[-1] != (0, 0) or min(map(min, layer.pads)) < 0:
            return None
        return tuple(before + size + after for size, (before, after) in zip(first, layer.pads, strict=True))
    axis = layer.axis
    if not 0 <= axis < len(first) - 1 or any(_without(shape, axis) != _without(first, axis) for shape in shapes):
        return None
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _without(shape: Shape, axis: int) -> tuple[int, Shape]:
    return len(shape), (*shape[:axis], *shape[axis + 1 :])
