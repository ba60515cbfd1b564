"""Images in another size. What `resize` of tpucc doesn't mean is a product with the matrix of weights along each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import NO_VALUES, Network
from tpucc.interop.onnx.reading.building.values import Grid, Tensor
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.rules.places import mixed, require_few_picks, taken
from tpucc.interop.onnx.reading.rules.windows import channels_last, from_channels_last
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


def _resize(c: Call) -> Result:
    x, mode = c.tensor(0), c.attribute("mode", "nearest")
    if not isinstance(x.kind, Grid) or mode == "nearest":
        return _real_values(c, x)
    if mode == "cubic":
        raise Unsupported("cubic interpolation of integers", "ONNX Runtime has none: DequantizeLinear before it makes real values of them")
    return _truncated(c.network, _real_values(c, x), x.kind)


def _real_values(c: Call, x: Tensor) -> Tensor:
    if c.node.op == "Upsample":
        scales = [float(s) for s in (c.array(1, "the scales").reshape(-1) if c.has(1) else c.attribute("scales"))]
        return _resized(
            c, x, [math.floor(size * scale) for size, scale in zip(x.shape, scales, strict=True)], scales, "asymmetric", "floor"
        )
    if c.attribute("antialias", 0) or c.attribute("exclude_outside", 0):
        raise Unsupported("resizing with antialias or exclude_outside", "export it without: antialias=False")
    sizes, scales = _sizes(c, x)
    old = c.opset < 11
    place = "asymmetric" if old else c.attribute("coordinate_transformation_mode", "half_pixel")
    return _resized(c, x, sizes, scales, place, "floor" if old else c.attribute("nearest_mode", "round_prefer_floor"))


def _sizes(c: Call, x: Tensor) -> tuple[list[int], list[float]]:
    """The sizes of the result, and the scales, for all axes."""
    at = 1 if c.opset < 11 else 2
    axes = [int(axis) % x.rank for axis in c.attribute("axes") or range(x.rank)]
    if c.has(3) and c.array(3, "the sizes").size:
        wanted = c.integers(3, "the sizes")
        policy = c.attribute("keep_aspect_ratio_policy", "stretch")
        ratios = [size / x.shape[axis] for axis, size in zip(axes, wanted, strict=True)]
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            wanted = [math.floor(ratio * x.shape[axis] + 0.5) for axis in axes]
            ratios = [ratio] * len(axes)
    else:
        ratios = [float(scale) for scale in c.array(at, "the scales").reshape(-1)]
        wanted = [math.floor(x.shape[axis] * ratio) for axis, ratio in zip(axes, ratios, strict=True)]
    sizes, scales = list(x.shape), [1.0] * x.rank
    for axis, size, ratio in zip(axes, wanted, ratios, strict=True):
        sizes[axis], scales[axis] = size, ratio
    return sizes, scales


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


def _resized(c: Call, x: Tensor, sizes: list[int], scales: list[float], place: str, rounding: str) -> Tensor:
    net, mode = c.network, c.attribute("mode", "nearest")
    changed = [axis for axis in range(x.rank) if sizes[axis] != x.shape[axis] or scales[axis] != 1]
    if not changed:
        _coordinates(1, 1, 1.0, place)
        return x
    net.require_room(sum(sizes[axis] for axis in changed))
    if min(sizes) < 1:
        raise Unsupported(f"a result of the sizes {sizes}", NO_VALUES)
    if mode == "nearest":
        places = {axis: _nearest(x.shape[axis], sizes[axis], scales[axis], place, rounding) for axis in changed}
        matching = all((places[axis] == nearest(x.shape[axis], sizes[axis])).all() for axis in changed)
    else:
        for axis in changed:
            require_few_picks(x.shape[axis], sizes[axis])
        matrices = {axis: _matrix(x.shape[axis], sizes[axis], scales[axis], place, mode, c) for axis in changed}
        matching = mode == "linear" and all(_is_bilinear(matrices[axis]) for axis in changed)
    if matching and x.rank in (3, 4) and set(changed) <= set(range(2, x.rank)):
        target = (sizes[2], sizes[3]) if x.rank == 4 else (1, sizes[2])
        node = channels_last(net, x)
        made = net.add("resize", node, size=target) if mode == "nearest" else net.add("resize", node, size=target, mode="bilinear")
        return from_channels_last(net, made, x.rank)
    for axis in changed:
        x = taken(net, x, axis, places[axis].tolist()) if mode == "nearest" else mixed(net, x, axis, matrices[axis].astype(np.float32))
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


def _matrix(size: int, outputs: int, scale: float, place: str, mode: str, c: Call) -> AnyArray:
    """The weight of each pixel in each output, float64 [size, outputs]; what lies outside is the pixel at the edge."""
    found = _coordinates(size, outputs, scale, place)
    low = np.floor(found)
    share = found - low
    if mode == "linear":
        taps = {0: 1 - share, 1: share}
    elif mode == "cubic":
        taps = _cubic(share, c.attribute("cubic_coeff_a", -0.75))
    else:
        raise Unsupported(f"the mode {mode}", "nearest, linear and cubic are read")
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


RULES: Mapping[str, Rule] = {"Resize": _resize, "Upsample": _resize}
