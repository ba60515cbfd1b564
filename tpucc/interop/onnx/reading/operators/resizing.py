"""Images in another size. What `resize` of tpucc doesn't mean is a product with the matrix of weights along each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, normal_axes
from tpucc.interop.onnx.reading.building.network import NO_VALUES, Network
from tpucc.interop.onnx.reading.building.values import Grid, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.interop.onnx.reading.operators.convolutions import channels_last, from_channels_last
from tpucc.interop.onnx.reading.operators.places import mixed, require_few_picks, taken
from tpucc.interop.onnx.reading.operators.rows import ROWS, Fact, Floats, Ints, operator
from tpucc.interop.onnx.reading.operators.shapes import require_memory
from tpucc.numerics import AnyArray
from tpucc.ops.resize import between, nearest

ROUNDINGS: Mapping[str, Callable[[AnyArray], AnyArray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


LOST = 2.0**-10
"""Of a unit: how far below a whole number float32 may put a sum of shares of integers."""


@dataclass(frozen=True)
class Sampling:
    """How pixels of a result are made of those of an image, in the words of ONNX's Resize; `a` is the number of a cubic."""

    mode: str = "nearest"
    place: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    a: float = -0.75


@operator("Resize", Fact.IMAGES, Fact.KEEPS, ignored="extrapolation_value")
def resize(
    c: Call,
    x: Tensor,
    second: Value | None,
    scales: Floats | None,
    sizes: Ints | None,
    *,
    antialias: bool = False,
    axes: Ints | None = None,
    coordinate_transformation_mode: Literal[
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ] = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    keep_aspect_ratio_policy: Literal["stretch", "not_larger", "not_smaller"] = "stretch",
    mode: Literal["nearest", "linear", "cubic"] = "nearest",
    nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] = "round_prefer_floor",
) -> Result:
    """Before opset 11 it is Upsample, with the scales as the second operand."""
    if c.opset < 11:
        return ROWS["Upsample"].built(c)
    if antialias or exclude_outside:
        raise Unsupported("resizing with antialias or exclude_outside", "export it without: antialias=False")
    chosen = tuple(range(x.rank)) if axes is None else tuple(normal_axes(axes, x.rank))
    both = _require_numbers(scales or (), sizes, chosen, x.shape)
    if both:
        ratios = [size / x.shape[axis] for axis, size in zip(chosen, both, strict=True)]
        if keep_aspect_ratio_policy not in ("stretch", ""):
            ratio = min(ratios) if keep_aspect_ratio_policy == "not_larger" else max(ratios)
            both = [math.floor(ratio * x.shape[axis] + 0.5) for axis in chosen]
            ratios = [ratio] * len(chosen)
    else:
        ratios = list(scales or ())
        both = [math.floor(x.shape[axis] * ratio) for axis, ratio in zip(chosen, ratios, strict=True)]
    wanted, factors = list(x.shape), [1.0] * x.rank
    for axis, size, ratio in zip(chosen, both, ratios, strict=True):
        wanted[axis], factors[axis] = size, ratio
    return resized_values(c.net, x, wanted, factors, Sampling(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a))


def _require_numbers(scales: Sequence[float], sizes: Ints | None, axes: Sequence[int], shape: tuple[int, ...]) -> Sequence[int]:
    """The sizes; none where there are scales. Raises `Misfit` for numbers that are none of the axes."""
    require(all(math.isfinite(number) and number > 0 for number in (*scales, *(sizes or ()))))
    require(bool(scales) != bool(sizes) and len(scales or sizes or ()) == len(axes))
    require_memory([shape[axis] * scale for axis, scale in zip(axes, scales, strict=True)] if scales else sizes or ())
    return sizes or ()


@operator("Upsample", Fact.IMAGES, Fact.KEEPS)
def upsample(c: Call, x: Tensor, scales: Floats, *, mode: Literal["nearest", "linear"] = "nearest") -> Result:
    _require_numbers(scales, None, range(x.rank), x.shape)
    sizes = [math.floor(size * scale) for size, scale in zip(x.shape, scales, strict=True)]
    return resized_values(c.net, x, sizes, list(scales), Sampling(mode, "asymmetric", "floor"))


def resized_values(net: Network, x: Tensor, sizes: list[int], scales: list[float], how: Sampling) -> Tensor:
    """The tensor in other sizes; of integers of the file as ONNX Runtime makes them."""
    made = _resized(net, x, sizes, scales, how)
    if not isinstance(x.kind, Grid) or how.mode in ("nearest", ""):
        return made
    if how.mode == "cubic":
        raise Unsupported("cubic interpolation of integers", "ONNX Runtime has none: DequantizeLinear before it makes real values of them")
    return _truncated(net, made, x.kind)


def _truncated(net: Network, t: Tensor, grid: Grid) -> Tensor:
    """What is between integers of the file as ONNX Runtime makes it an integer: without its fraction. The rounding to the nearest one
    comes after this, so it is put half a unit nearer to the integer 0, less what float32 may have lost of a whole number, and not past it.
    Comparing keeps all of this in float32 on the host."""
    half, zero = (0.5 - LOST) * grid.scale, net.scalar(-(grid.zero_point + grid.shift) * grid.scale)
    below = net.affine(t, 1.0, -half).node
    if grid.shift:  # no integer is below 0
        return Tensor(net.add("maximum", below, zero), t.axes)
    above = net.add("minimum", net.affine(t, 1.0, half).node, zero)
    return Tensor(net.add("maximum", below, above), t.axes)


def _resized(net: Network, x: Tensor, sizes: list[int], scales: list[float], how: Sampling) -> Tensor:
    changed = [axis for axis in range(x.rank) if sizes[axis] != x.shape[axis] or scales[axis] != 1]
    if not changed:
        _coordinates(1, 1, 1.0, how.place)
        return x
    net.require_room(sum(sizes[axis] for axis in changed))
    if min(sizes) < 1:
        raise Unsupported(f"a result of the sizes {sizes}", NO_VALUES)
    is_nearest = how.mode in ("nearest", "")
    if is_nearest:
        places = {axis: _nearest(x.shape[axis], sizes[axis], scales[axis], how.place, how.rounding) for axis in changed}
        matching = all((places[axis] == nearest(x.shape[axis], sizes[axis])).all() for axis in changed)
    else:
        for axis in changed:
            require_few_picks(x.shape[axis], sizes[axis])
        matrices = {axis: _matrix(x.shape[axis], sizes[axis], scales[axis], how) for axis in changed}
        matching = how.mode == "linear" and all(_is_bilinear(matrices[axis]) for axis in changed)
    if matching and x.rank in (3, 4) and set(changed) <= set(range(2, x.rank)):
        target = (sizes[2], sizes[3]) if x.rank == 4 else (1, sizes[2])
        node = channels_last(net, x)
        made = net.add("resize", node, size=target) if is_nearest else net.add("resize", node, size=target, mode="bilinear")
        return from_channels_last(net, made, x.rank)
    for axis in changed:
        x = taken(net, x, axis, places[axis].tolist()) if is_nearest else mixed(net, x, axis, matrices[axis].astype(np.float32))
    return x


def _coordinates(size: int, outputs: int, scale: float, place: str) -> AnyArray:
    """Where each output lies among the pixels: ONNX's coordinate_transformation_mode."""
    i = np.arange(outputs, dtype=np.float64)
    match place:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if outputs > 1 else np.zeros(1)
        case "align_corners":
            if abs(size * scale - outputs) > 1e-3 and outputs > 1:
                raise Unsupported("align_corners with scales that give no whole sizes", "name the sizes instead: runtimes differ here")
            return i * (size - 1) / (outputs - 1) if outputs > 1 else np.zeros(1)
        case "asymmetric":
            return i / scale
        case "half_pixel_symmetric":
            offset = size / 2 * (1 - outputs / (scale * size))
            return offset + (i + 0.5) / scale - 0.5
    raise Unsupported(f"the coordinates {place}", "half_pixel, align_corners and asymmetric are read: crop with Slice before it")


def _nearest(size: int, outputs: int, scale: float, place: str, rounding: str) -> AnyArray:
    found = _coordinates(size, outputs, scale, place)
    return np.clip(ROUNDINGS[rounding](found), 0, size - 1).astype(np.int64)


def _matrix(size: int, outputs: int, scale: float, how: Sampling) -> AnyArray:
    """The weight of each pixel in each output, float64 [size, outputs]; what lies outside is the pixel at the edge."""
    found = _coordinates(size, outputs, scale, how.place)
    low = np.floor(found)
    share = found - low
    taps = {0: 1 - share, 1: share} if how.mode == "linear" else _cubic(share, how.a)
    matrix = np.zeros((size, outputs))
    for tap, weight in taps.items():
        np.add.at(matrix, (np.clip(low.astype(np.int64) + tap, 0, size - 1), np.arange(outputs)), weight)
    return matrix


def _cubic(share: AnyArray, a: float) -> dict[int, AnyArray]:
    """Keys' cubic convolution: the weights of the four nearest pixels."""

    def near(d: AnyArray) -> AnyArray:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: AnyArray) -> AnyArray:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return {-1: far(share + 1), 0: near(share), 1: near(1 - share), 2: far(2 - share)}


def _is_bilinear(matrix: AnyArray) -> bool:
    size, outputs = matrix.shape
    first, second, share = between(size, outputs)
    ours = np.zeros_like(matrix)
    np.add.at(ours, (first, np.arange(outputs)), 1 - share)
    np.add.at(ours, (second, np.arange(outputs)), share)
    return bool(np.abs(ours - matrix).max() < 1e-6)
