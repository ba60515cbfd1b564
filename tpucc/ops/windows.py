"""Windows that walk over images: the geometry that convolution and pooling share.

Images are NHWC. An `Axis` is one of the two spatial axes, and each kernel position knows which outputs see a real pixel there. With
attributes that have a `padding`, a part of the result is computed by the same operator with another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tpucc.ir import TensorType, f32
from tpucc.ops.axis import Axis, Ends
from tpucc.ops.facts import WindowRule
from tpucc.ops.opdef import Array, Example, RuleError, Types
from tpucc.ops.parts import Bounds, Part, PartRule, Shape, Shapes
from tpucc.ops.rules import is_integer, require_f32, require_flag, require_integer, require_pair, require_rank, shown

MAX_STEP = 65_535
"""The largest window of a pool, and the largest stride and padding."""

Padding = str | int | tuple[int, int, int, int]
Pair = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class PoolAttributes:
    """`size` and `stride` are (height, width) or one integer for both; without a stride, windows lie side by side.

    `padding` is "valid", "same", an integer for all sides, or (top, bottom, left, right). With `ceil` a last window may reach beyond it.
    """

    size: Pair = 2
    stride: Pair | None = None
    padding: Padding = "valid"
    ceil: bool = False


POOLS = (
    Example("one whole tile", PoolAttributes(), (f32(1, 32, 32, 256),)),
    Example("ragged", PoolAttributes(3, 2, "same"), (f32(2, 7, 8, 5),)),
    Example("padding by hand", PoolAttributes((3, 2), (1, 2), (2, 0, 1, 1)), (f32(1, 5, 6, 3),)),
    Example("beyond the end", PoolAttributes((3, 2), 2, (1, 1, 0, 1), ceil=True), (f32(1, 6, 7, 3),)),
)
"""The examples of pools."""


def axes(
    x: tuple[int, ...], window: tuple[int, int], stride: tuple[int, int], padding: object, dilation: tuple[int, int] = (1, 1)
) -> tuple[Axis, Axis]:
    """The two spatial axes of an image of the shape `x`, [N, H, W, C].

    Raises `RuleError` for a window that doesn't fit, or a wrong padding.
    """
    height, width = _padded(x, window, stride, padding, dilation)
    require_fit(height, "height")
    require_fit(width, "width")
    return height, width


def _padded(
    x: tuple[int, ...], window: tuple[int, int], stride: tuple[int, int], padding: object, dilation: tuple[int, int] = (1, 1)
) -> tuple[Axis, Axis]:
    """As `axes`, for windows that may not fit."""
    extent = [(taps - 1) * apart + 1 for taps, apart in zip(window, dilation, strict=True)]
    sides = sides_of(padding, x[1:3], extent, stride)
    height, width = (Axis(*numbers) for numbers in zip(x[1:3], window, stride, sides[::2], sides[1::2], dilation, strict=True))
    return height, width


def require_fit(axis: Axis, name: str) -> None:
    """Raises `RuleError` unless a window fits into the image's `name`, height or width, with its padding."""
    room = axis.size + axis.before + axis.after
    if axis.extent > room:
        grown = " with its padding" if axis.before + axis.after else ""
        dilated = f" ({axis.window}, dilated by {axis.dilation})" if axis.dilation > 1 else ""
        found = f"{axis.extent}{dilated} is more than the image's {room}{grown}"
        raise RuleError("E0312", f"the window's {name} of {found}", about=(0,), help='padding="same" keeps windows at the borders')


def sides_of(padding: Any, image: Sequence[int], window: Sequence[int], stride: Sequence[int]) -> tuple[int, int, int, int]:
    """Padding as (top, bottom, left, right)."""
    if padding == "valid":
        return 0, 0, 0, 0
    if padding == "same":
        (top, bottom), (left, right) = map(_same, image, window, stride)
        return top, bottom, left, right
    sides = (padding,) * 4 if is_integer(padding) else padding
    if not isinstance(sides, tuple | list) or len(sides) != 4:
        expected = '"same", "valid", an integer, or (top, bottom, left, right)'
        raise RuleError("E0306", f"padding must be {expected}{shown(padding)}", about=("padding",))
    top, bottom, left, right = (require_integer(side, "padding", 0, MAX_STEP) for side in sides)
    return top, bottom, left, right


def _same(size: int, window: int, stride: int) -> tuple[int, int]:
    """TensorFlow's rule: ceil(size / stride) outputs; padding shared by both ends, and an odd pixel goes to the far one."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + window - size)
    return total // 2, total - total // 2


def pool_axes(attributes: PoolAttributes, x: tuple[int, ...], count_padding: bool = False) -> tuple[Axis, Axis]:
    """The axes of a pool over an image of the shape `x`, [N, H, W, C]; with `count_padding` the padding is counted.

    Every window must have a real pixel: there is no maximum and no average of none. Raises `RuleError`.
    """
    size = require_pair(attributes.size, "size", MAX_STEP)
    stride = size if attributes.stride is None else require_pair(attributes.stride, "stride", MAX_STEP)
    height, width = _padded(x, size, stride, attributes.padding)
    if count_padding:
        height, width = (replace(axis, counted=(axis.before, axis.after)) for axis in (height, width))
    if require_flag(attributes.ceil, "ceil"):
        height, width = _reaching(height), _reaching(width)
    require_fit(height, "height")
    require_fit(width, "width")
    for axis in (height, width):
        if max(axis.before, axis.after) >= axis.window:
            raise RuleError("E0312", "padding must be smaller than the window: some windows would have no pixel", about=("padding",))
    return height, width


def _reaching(axis: Axis) -> Axis:
    """The axis with the padding that a last window needs to reach beyond the end; no window begins in the padding after the pixels.

    This is PyTorch's rule and that of ONNX's `ceil_mode`.
    """
    room = axis.size + axis.before + axis.after - axis.window
    if room <= -axis.stride:
        return axis
    last = min(-(-room // axis.stride), (axis.size + axis.before - 1) // axis.stride) * axis.stride
    after = max(0, last + axis.window - axis.size - axis.before)
    return replace(axis, after=after, counted=(axis.counted[0], min(axis.counted[1], after)))


def infer_pool(attributes: PoolAttributes, types: Types) -> TensorType:
    """`[N, H, W, C]` becomes `[N, H', W', C]`."""
    require_f32(types)
    require_rank(types[0], 4, 0, "[batch, height, width, channels]")
    height, width = pool_axes(attributes, types[0].shape)
    return f32(types[0].shape[0], height.outputs, width.outputs, types[0].shape[3])


def onnx_windows(height: Axis, width: Axis) -> dict[str, list[int]]:
    """The attributes by which ONNX has these windows; without dilation where there is none, for pools haven't any."""
    both = (height, width)
    made = {"kernel_shape": [axis.window for axis in both], "strides": [axis.stride for axis in both]}
    made["pads"] = [axis.before for axis in both] + [axis.after for axis in both]
    return made | ({"dilations": [axis.dilation for axis in both]} if any(axis.dilation > 1 for axis in both) else {})


def reduce_axis(x: Array, dimension: int, axis: Axis, ufunc: np.ufunc, initial: float) -> Array:
    """`ufunc` of the pixels of each window along one dimension of `x` [N, H, W, C], which is `axis`."""
    shape = (*x.shape[:dimension], axis.outputs, *x.shape[dimension + 1 :])
    result = np.full_like(x, initial, order="C", shape=shape)
    before = (slice(None),) * dimension
    for position in axis.positions:
        outputs, pixels = axis.tap(position)
        part = result[(*before, outputs)]
        ufunc(part, x[(*before, pixels)], out=part)
    return result


def patches_of(x: Array, height: Axis, width: Axis) -> Array:
    """The pixels of each window side by side, zeros for padding: `[N, H, W, C]` becomes `[N, H', W', R·S·C]`, which is known as im2col.

    The order is that of a kernel `[R, S, C, F]`: row, column, channel. Only what windows over a real pixel see is padded in memory.
    """
    shape = (x.shape[0], height.outputs, width.outputs, height.window, width.window, x.shape[3])
    windows = np.zeros_like(x, order="C", shape=shape)
    (top, bottom), (left, right) = height.reached, width.reached
    if top < bottom and left < right:
        (rows, above), (columns, beside) = height.span((top, bottom)), width.span((left, right))
        image = _surrounded(x[:, slice(*rows), slice(*columns)], above, beside)
        seen = sliding_window_view(image, (height.extent, width.extent), axis=(1, 2))[:, :: height.stride, :: width.stride]
        windows[:, top:bottom, left:right] = seen[..., :: height.dilation, :: width.dilation].transpose(0, 1, 2, 4, 5, 3)
    return windows.reshape(*windows.shape[:3], -1)


def of_groups(x: Array, positions: int, groups: int) -> Iterator[Array]:
    """The columns of each group of channels: of `x` [M, positions·C] one [M, positions·C/groups] after the other."""
    if groups == 1:
        yield x
        return
    by_group = x.reshape(len(x), positions, groups, -1)
    for group in range(groups):
        yield by_group[:, :, group].reshape(len(x), -1)


def _surrounded(x: Array, above: Ends, beside: Ends) -> Array:
    """Images with zeros around them; `np.pad` takes longer for small ones than the copy does."""
    if not any(above + beside):
        return x
    shape = (x.shape[0], x.shape[1] + sum(above), x.shape[2] + sum(beside), x.shape[3])
    around = np.zeros_like(x, order="C", shape=shape)
    around[:, above[0] : above[0] + x.shape[1], beside[0] : beside[0] + x.shape[2]] = x
    return around


def pixels_seen(height: Axis, width: Axis) -> Array:
    """How many pixels of each window are real or counted: int64 `[H', W', 1]`."""
    return np.multiply.outer(height.pixels(), width.pixels())[..., np.newaxis]


def pool_windows(attributes: PoolAttributes, shapes: Shapes) -> tuple[Axis, Axis]:
    return pool_axes(attributes, shapes[0])


def window_part(windows: WindowRule) -> Callable[[Any, Shapes, Shape, Bounds], Part]:
    """The rule of operators whose windows walk over an image [N, H, W, C]: pixels of the image, and channels.

    A product has the channels of its result in its kernel and its bias, a pool in the image. Padding at an edge of the image that isn't
    one of the part goes.
    """

    def part(attributes: Any, shapes: Shapes, result: Shape, bounds: Bounds) -> Part:
        height, width = windows(attributes, shapes)
        (lines, above), (columns, beside) = height.read(bounds[1]), width.read(bounds[2])
        image, *weights = shapes
        channels = (0, image[3]) if weights else bounds[3]
        kernel = tuple((*((0, size) for size in shape[:-1]), bounds[3]) for shape in weights)
        if bounds[1:3] != ((0, height.outputs), (0, width.outputs)):
            attributes = replace(attributes, padding=(*above, *beside))
        return Part(((bounds[0], lines, columns, channels), *kernel), attributes)

    return part


def pool_part(windows: WindowRule) -> PartRule:
    """The rule of pools. Where only some of the padding counts, no attributes say so of a part, and the pool is computed whole."""
    alike = window_part(windows)

    def part(attributes: Any, shapes: Shapes, result: Shape, bounds: Bounds) -> Part | None:
        height, width = windows(attributes, shapes)
        found = alike(attributes, shapes, result, bounds)
        if bounds[1:3] == ((0, height.outputs), (0, width.outputs)):
            return found
        if getattr(attributes, "count_padding", False) and any(axis.counted != (axis.before, axis.after) for axis in (height, width)):
            return None
        lines: Any = found.attributes
        return replace(found, attributes=replace(lines, ceil=False))

    return part
