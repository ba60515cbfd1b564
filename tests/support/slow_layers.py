"""What layers compute, by loops over Python's numbers and from the real meaning of the integers: the oracle of the layers' reference.

Nothing here knows of folded zero points, halos or windows as arrays. A pixel outside the image is skipped, an operand's zero point is
taken off before it is multiplied, and float32 is a Python float that was packed into four bytes. Two operands of float32 have at most 48
bits in their product and none too many in their sum for float64 and one rounding to give float32's own result.

Values have 8 bits or 16, as their arrays and `Result.bits` say.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.support.slow_machine import between
from tpucc.numerics import AnyArray, DeviceInts, Float32, Int8, Int32

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Result:
    """How a sum becomes an integer of `bits`: the zero point, the bounds, and the function that is looked up.

    Of 8 bits the table has all values, entry 0 that of -128. Of 16 bits it has the values at -32768, -32512, …, 32768.
    """

    zero: int
    low: int = -128
    high: int = 127
    table: DeviceInts | None = None
    bits: int = 8

    def of(self, real: float) -> int:
        """Rounded to even, moved by the zero point, clamped, looked up."""
        value = max(self.low, min(self.high, round(real) + self.zero))
        if self.table is None:
            return value
        return int(self.table[value + 128]) if self.bits == 8 else between(self.table.tolist(), value)

    @property
    def dtype(self) -> np.dtype[np.int8 | np.int16]:
        return np.dtype(np.int8 if self.bits == 8 else np.int16)


@dataclass(frozen=True, slots=True)
class Walk:
    """A window's way over an image: its size, its stride, and the padding at the top, the bottom, the left and the right."""

    size: Pair
    stride: Pair
    sides: tuple[int, int, int, int]

    def outputs(self, height: int, width: int) -> Pair:
        """The largest number of windows that begin and end in the padded image."""
        top, bottom, left, right = self.sides
        down, across = height + top + bottom - self.size[0], width + left + right - self.size[1]
        return down // self.stride[0] + 1, across // self.stride[1] + 1

    def pixels(self, output: Pair, height: int, width: int) -> Iterator[tuple[Pair, Pair]]:
        """For each kernel position of an output's window that meets a real pixel: the position, the pixel."""
        for r in range(self.size[0]):
            for s in range(self.size[1]):
                row = output[0] * self.stride[0] + r - self.sides[0]
                column = output[1] * self.stride[1] + s - self.sides[2]
                if 0 <= row < height and 0 <= column < width:
                    yield (r, s), (row, column)


def single(value: float) -> float:
    """The float32 number nearest to `value`, ties to even."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def requantised(sums: Sequence[int], multiplier: Float32, result: Result) -> list[int]:
    """One row of accumulators, column by column."""
    return [result.of(single(single(total) * float(factor))) for total, factor in zip(sums, multiplier, strict=True)]


def product(
    xs: Sequence[DeviceInts], zeros: Sequence[int], weights: Sequence[Int8], bias: Int32, multiplier: Float32, result: Result
) -> DeviceInts:
    """xs [..., K_i], each with its zero point, times weights [K_i, N]; the bias [N] is that of the real numbers."""
    leading = xs[0].shape[:-1]
    values = np.empty((*leading, len(bias)), result.dtype)
    for place in np.ndindex(leading):
        sums = [int(b) for b in bias]
        for x, zero, w in zip(xs, zeros, weights, strict=True):
            for n in range(len(sums)):
                sums[n] += sum((a - zero) * b for a, b in zip(x[place].tolist(), w[:, n].tolist(), strict=True))
        values[place] = requantised(sums, multiplier, result)
    return values


def convolution(x: DeviceInts, zero: int, weights: Int8, bias: Int32, walk: Walk, multiplier: Float32, result: Result) -> DeviceInts:
    """x [B, H, W, C] and weights [R, S, C, F]; the bias [F] is that of the real numbers. Channels are summed in int64."""
    images, height, width, _ = x.shape
    values = np.empty((images, *walk.outputs(height, width), len(bias)), result.dtype)
    centred, wide = x.astype(np.int64) - zero, weights.astype(np.int64)
    for image, i, j in np.ndindex(values.shape[:3]):
        sums = bias.astype(np.int64)
        for tap, pixel in walk.pixels((i, j), height, width):
            sums = sums + centred[(image, *pixel)] @ wide[tap]
        values[image, i, j] = requantised(sums.tolist(), multiplier, result)
    return values


def largest(x: DeviceInts, walk: Walk) -> DeviceInts:
    """The largest pixel of each window of x [B, H, W, C]."""
    return _windows(x, walk, lambda values: max(values))


def mean(x: DeviceInts, zero: int, walk: Walk, scale: float, result: Result) -> DeviceInts:
    """The mean of each window's real pixels, times scale: one float32 division, one float32 product."""

    def average(values: list[int]) -> int:
        total = sum(value - zero for value in values)
        return result.of(single(single(single(scale) / len(values)) * single(total)))

    return _windows(x, walk, average)


def _windows(x: DeviceInts, walk: Walk, function: Callable[[list[int]], int]) -> DeviceInts:
    images, height, width, channels = x.shape
    values = np.empty((images, *walk.outputs(height, width), channels), x.dtype)
    for image, i, j, c in np.ndindex(values.shape):
        values[image, i, j, c] = function([int(x[image, y, k, c]) for _, (y, k) in walk.pixels((i, j), height, width)])
    return values


def sum_of(sign: int, a: DeviceInts, b: DeviceInts, scales: tuple[float, float], zeros: Pair, result: Result) -> DeviceInts:
    """a + b or a - b of one shape, every product and the sum rounded to float32."""
    values = np.empty(a.shape, result.dtype)
    for place in np.ndindex(a.shape):
        left = single(single(scales[0]) * (int(a[place]) - zeros[0]))
        right = single(single(scales[1]) * (int(b[place]) - zeros[1]))
        values[place] = result.of(single(left + sign * right))
    return values


def product_of(a: DeviceInts, b: DeviceInts, scale: float, zeros: Pair, result: Result) -> DeviceInts:
    """a * b of one shape; a product of 16-bit values is rounded to float32 before it is scaled."""
    values = np.empty(a.shape, result.dtype)
    for place in np.ndindex(a.shape):
        values[place] = result.of(single(single(scale) * single((int(a[place]) - zeros[0]) * (int(b[place]) - zeros[1]))))
    return values


def joined(parts: Sequence[AnyArray], axis: int) -> AnyArray:
    """The parts one after the other along an axis, element by element."""
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    values, start = np.empty(shape, parts[0].dtype), 0
    for part in parts:
        for place in np.ndindex(part.shape):
            values[tuple(index + start if at == axis else index for at, index in enumerate(place))] = part[place]
        start += part.shape[axis]
    return values


def surrounded(x: DeviceInts, pads: Sequence[Pair], value: int) -> DeviceInts:
    """`value` before and after each axis of x."""
    values = np.full([size + before + after for size, (before, after) in zip(x.shape, pads, strict=True)], value, x.dtype)
    for place in np.ndindex(x.shape):
        values[tuple(index + before for index, (before, _) in zip(place, pads, strict=True))] = x[place]
    return values
