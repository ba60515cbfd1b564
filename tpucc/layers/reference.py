"""The meaning of each layer, written as plainly as possible: the integers that the machine must compute, bit for bit.

It shares no code with the simulator but the scalar rules of `tpucc.numerics` (round, saturate, requantise): no tiles, no rows, no
instructions. Products are exact: integers are widened to float64, in which every sum that fits an accumulator is exact, or to float32 where
no sum can pass 2²⁴.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, assert_never

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tpucc.ir import Node
from tpucc.ir.dtypes import DEVICE_FORMATS, IntegerFormat
from tpucc.layers.kinds import (
    FUNCTIONS_OF_TWO,
    LAYERS,
    Conv,
    Fc,
    Move,
    MoveFunction,
    Pool,
    PoolFunction,
    Requantise,
    Sides,
    Vector,
    VectorFunction,
    epilogue_of,
)
from tpucc.numerics import AnyArray, DeviceInts, Float32, Float64, Int8, Int64, interpolate, requantise, saturate


def compute(node: Node, operands: Sequence[AnyArray]) -> DeviceInts:
    """The result of a layer, integers of the node's type, from the operands that `tpucc.layers.kinds` lists.

    Raises `OverflowError` when a sum doesn't fit the int32 accumulators, which `verify_layers` rules out, and `TypeError` for a node
    that isn't a layer.
    """
    to = DEVICE_FORMATS[node.type.dtype]
    match node.attributes:
        case Fc(sources=count):
            return fully_connected(node.attributes, operands[:count], operands[count : 2 * count], *operands[2 * count :], to=to)
        case Conv():
            return convolution(node.attributes, *operands, to=to)
        case Pool():
            return pooled(node.attributes, operands[0], to)
        case Vector(function=VectorFunction.TABLE):
            return look_up(operands[1], operands[0], to).reshape(node.type.shape)
        case Vector():
            return element_wise(node.attributes, *operands, to=to)
        case Move():
            return moved(node.attributes, operands)
    raise TypeError(f"{node.name} isn't a layer but {node.op}")


def fully_connected(
    layer: Fc,
    xs: Sequence[DeviceInts],
    weights: Sequence[Int8],
    bias: AnyArray,
    multiplier: Float32,
    table: DeviceInts | None = None,
    *,
    to: IntegerFormat,
) -> DeviceInts:
    """xs [..., K_i], weights [..., K_i, N], bias int32 [N], multiplier float32 [N] → [..., N], held as the xs."""
    sums = sum((x.astype(np.float64) @ w.astype(np.float64) for x, w in zip(xs, weights, strict=True)), start=bias.astype(np.float64))
    return _requantised(layer.epilogue, np.asarray(sums), multiplier, table, to)


def convolution(
    layer: Conv, x: DeviceInts, weights: Int8, bias: AnyArray, multiplier: Float32, table: DeviceInts | None = None, *, to: IntegerFormat
) -> DeviceInts:
    """x [B, H, W, C], weights [R, S, C / groups, F], bias int32 [F], multiplier float32 [F] → [B, H', W', F], held as x: for each position
    of the kernel, the pixels under it times its matrix; of each group of channels, its own."""
    exact = _exact(x, math.prod(weights.shape[:3]))
    *size, depth, filters = weights.shape
    windows = _windows(_surrounded(x, layer.sides, layer.outside).astype(exact), (size[0], size[1]), layer.stride, layer.dilation)
    images, height, width = windows.shape[:3]
    sums = np.zeros((layer.groups, images * height * width, filters // layer.groups), exact)
    for r, s in np.ndindex(*size):
        pixels = windows[..., r, s].reshape(-1, layer.groups, depth).swapaxes(0, 1)
        sums += pixels @ weights[r, s].astype(exact).reshape(depth, layer.groups, -1).swapaxes(0, 1)
    whole = sums.swapaxes(0, 1).reshape(images, height, width, filters) + bias.astype(np.float64)
    return _requantised(layer.epilogue, whole, multiplier, table, to)


def _exact(x: DeviceInts, terms: int) -> type[np.floating[Any]]:
    """The narrowest float in which sums of this many products of values and weights, and of fewer, are exact."""
    return np.float32 if terms * -np.iinfo(x.dtype).min * -np.iinfo(np.int8).min <= 1 << np.finfo(np.float32).nmant else np.float64


def pooled(layer: Pool, x: DeviceInts, to: IntegerFormat) -> DeviceInts:
    """x [B, H, W, C] → [B, H', W', C], held as x. Pixels outside the image have no value: they neither win nor count, but for those of
    the padding that are said to count, as zeros."""
    match layer.function:
        case PoolFunction.MAX:
            around = _surrounded(x, layer.sides, to.low)
            return np.asarray(_windows(around, layer.size, layer.stride).max(axis=(4, 5)))
        case PoolFunction.AVERAGE:
            return _averaged(layer, x, to)
        case _:
            assert_never(layer.function)


def _averaged(layer: Pool, x: DeviceInts, to: IntegerFormat) -> DeviceInts:
    """The means of the windows: the sum of each, less the zero points, times the scale over the number of pixels that count."""
    end = epilogue_of(layer)
    centred = _surrounded(x.astype(np.int32) - end.zeros[0], layer.sides, 0)
    totals = _windows(centred, layer.size, layer.stride).sum(axis=(4, 5), dtype=np.int64)
    top, bottom, left, right = (side - some for side, some in zip(layer.sides, layer.counted, strict=True))
    real = _surrounded(np.ones((1, *x.shape[1:3], 1), np.int32), layer.counted, 1)
    counts = _windows(_surrounded(real, (top, bottom, left, right), 0), layer.size, layer.stride).sum(axis=(4, 5), dtype=np.int32)
    factors = np.float32(end.scales[0]) / counts.astype(np.float32)
    return saturate(np.rint(factors * totals.astype(np.float32)), end.zero, *end.bounds(to), to)


def moved(layer: Move, operands: Sequence[AnyArray]) -> DeviceInts:
    """Operands joined along an axis, or one with rows around it."""
    match layer.function:
        case MoveFunction.CONCAT:
            return np.concatenate(operands, axis=layer.axis)
        case MoveFunction.PAD:
            return np.pad(operands[0], layer.pads, constant_values=layer.value)
        case _:
            assert_never(layer.function)


def element_wise(layer: Vector, a: DeviceInts, b: DeviceInts, table: DeviceInts | None = None, *, to: IntegerFormat) -> DeviceInts:
    """a and b, of shapes that broadcast → their common shape, held as they are. Every step is rounded to float32, in this order."""
    end = epilogue_of(layer)
    left, right = (x.astype(np.float32) - np.float32(zero) for x, zero in zip((a, b), end.zeros, strict=True))
    scales = [np.float32(scale) for scale in end.scales]
    function = FUNCTIONS_OF_TWO[layer.function]
    real = scales[0] * function.real(left, right) if function.one_scale else function.real(scales[0] * left, scales[1] * right)
    return _through(table, saturate(np.rint(real), end.zero, *end.bounds(to), to), to)


def look_up(table: DeviceInts, values: DeviceInts, of: IntegerFormat) -> DeviceInts:
    """The table's entry of each value, both of the format `of`: entry 0 is that of `of.low`. Values between entries are interpolated."""
    return table[values.astype(np.intp) - of.low] if of.has_exact_tables else interpolate(values, table, of)


def _surrounded(x: AnyArray, sides: Sides, value: int) -> AnyArray:
    """x [B, H, W, C] with `sides` of pixels of one value around it."""
    top, bottom, left, right = sides
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def _windows(x: AnyArray, size: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int] = (1, 1)) -> AnyArray:
    """The windows of x [B, H, W, C], whose pixels are `dilation` apart: [B, H', W', C, *size]."""
    down, across = ((taps - 1) * apart + 1 for taps, apart in zip(size, dilation, strict=True))
    windows = sliding_window_view(x, (down, across), axis=(1, 2))[:, :: stride[0], :: stride[1]]
    return windows[..., :: dilation[0], :: dilation[1]]


def _requantised(end: Requantise, sums: Float64, multiplier: Float32, table: DeviceInts | None, to: IntegerFormat) -> DeviceInts:
    values = requantise(_int32(sums.astype(np.int64)), multiplier, end.zero, *end.bounds(to), to)
    return _through(table, values, to)


def _through(table: DeviceInts | None, values: DeviceInts, to: IntegerFormat) -> DeviceInts:
    return values if table is None else look_up(table, values, to)


def _int32(sums: Int64) -> AnyArray:
    limits = np.iinfo(np.int32)
    if sums.size and not limits.min <= sums.min() <= sums.max() <= limits.max:
        raise OverflowError("a sum doesn't fit the int32 accumulators")
    return sums.astype(np.int32)


LAYER_REFERENCES: Mapping[str, Callable[[Node, Sequence[AnyArray]], AnyArray]] = MappingProxyType(dict.fromkeys(LAYERS, compute))
"""The reference of each layer by its operator's name: what `tpucc.ops` lacks to evaluate a layer graph."""
