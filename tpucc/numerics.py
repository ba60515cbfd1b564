"""The only integer arithmetic of tpucc: quantise, requantise, saturate, and the bound under which float32 products are exact.

Each rule stands once, here. Requantisation is that of ONNX Runtime's QLinearMatMul: the multiplier is float32, ties go to the even
integer (`round_half_even` below, which is `np.rint`), and the zero point is added after rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.ir.dtypes import I8, IntegerFormat

Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
DeviceInts = npt.NDArray[np.int8 | np.int16]
"""Integers as the device holds values."""

WEIGHT_MAX = 127
"""Weights are symmetric: -127…127."""
EXACT = 2**24
"""Integers below this magnitude, and their sums as long as they stay below it, are exact in float32 in any order."""
INT32_MAX = 2**31 - 1
BEYOND_INT32 = 2**40


def quantise(x: AnyArray, scale: float, zero_point: int, to: IntegerFormat = I8) -> DeviceInts:
    """`saturate(round_half_even(float32(x) / float32(scale)) + zero_point)`; any shape. ONNX: QuantizeLinear."""
    # lab 3 begin: divide by the scale, round, add the zero point, saturate
    with np.errstate(over="ignore"):
        q = np.rint(x.astype(np.float32, copy=False) / np.float32(scale))
    return saturate(q, zero_point, to.low, to.high, to)
    # lab 3 end


def dequantise(q: AnyArray, scale: float, zero_point: int) -> Float32:
    """`float32(q - zero_point) * float32(scale)`; any shape."""
    return (q.astype(np.int32) - np.int32(zero_point)).astype(np.float32) * np.float32(scale)


def saturate(rounded: AnyArray, zero_point: int, low: int, high: int, to: IntegerFormat = I8) -> DeviceInts:
    """A rounded float32 value plus the zero point, clamped to low…high.

    The clamp comes first, moved by the zero point: then the sum is exact however large the rounded value is.
    """
    # lab 3 begin: add the zero point and saturate
    clamped = np.clip(rounded, np.float32(low - zero_point), np.float32(high - zero_point))
    held: DeviceInts = (clamped + np.float32(zero_point)).astype(to.numpy)
    return held
    # lab 3 end


def requantise(
    accumulator: Int32, multiplier: Float32, zero_point: int, low: int = I8.low, high: int = I8.high, to: IntegerFormat = I8
) -> DeviceInts:
    """`saturate(round_half_even(float32(acc) * multiplier) + zero_point)`, clamped to low…high.

    `accumulator` is int32 [..., N] with the bias already added; `multiplier` is float32 [N] or a scalar.
    """
    # lab 3 begin: multiply, round, add the zero point, saturate
    product = accumulator.astype(np.float32) * np.asarray(multiplier, np.float32)
    return saturate(np.rint(product), zero_point, low, high, to)
    # lab 3 end


def weight_scales(weights: AnyArray, per_channel: bool) -> Float32:
    """The scales of symmetric int8 weights [K, N]: float32 [N], one a column, or all equal to the tensor's.

    A column of zeros has the scale 1, and no scale is so small that it isn't a normal float32.
    """
    # lab 3 begin: choose the scale of each column
    largest = np.abs(weights).max(axis=0, initial=0.0)
    if not per_channel:
        largest = np.full_like(largest, largest.max(initial=0.0))
    scales = (largest.astype(np.float64) / WEIGHT_MAX).astype(np.float32)
    return np.where(scales < np.finfo(np.float32).tiny, np.float32(1), scales).astype(np.float32)
    # lab 3 end


def quantise_weights(weights: AnyArray, scales: Float32) -> Int8:
    """Symmetric int8 weights in -127…127: `saturate(round_half_even(w / scale))`."""
    # lab 3 begin: round weights to symmetric integers
    q = np.rint(weights.astype(np.float32, copy=False) / scales)
    clipped: Int8 = np.clip(q, -WEIGHT_MAX, WEIGHT_MAX).astype(np.int8)
    return clipped
    # lab 3 end


def quantise_bias(bias: AnyArray, weight_scales: Float32, x_scale: float, x_zero: int, weights: Int8) -> Int64:
    """The bias in units of the accumulator, with the input's zero point folded in: `round(b / (s_x * s_w)) - z_x * sum_k w[k, n]`.

    `bias` is real [N], `weights` int8 [K, N]; int64 [N], for the caller to see whether it fits int32. The product of two float32 scales
    is exact in float64. Values past 2^40 are cut there.
    """
    real = bias.astype(np.float64) / (np.float64(np.float32(x_scale)) * weight_scales.astype(np.float64))
    rounded: Int64 = np.clip(np.rint(real), -BEYOND_INT32, BEYOND_INT32).astype(np.int64)
    sums: Int64 = weights.sum(axis=0, dtype=np.int64)
    return rounded - x_zero * sums


def multiplier(scale: float, by: Float32 | float, result: float) -> Float32:
    """`scale * by / result`, in float32 with each step rounded, as ONNX Runtime's QLinearMatMul computes it; `by` float32 [N] or a scalar.

    A result too small for a normal float32 becomes the smallest normal one: whatever it multiplies rounds to zero with either.
    """
    with np.errstate(over="ignore", under="ignore"):
        exact = np.float32(scale) * np.asarray(by, np.float32) / np.float32(result)
    factors: Float32 = np.maximum(exact, np.finfo(np.float32).tiny)
    return factors


def interpolate(values: DeviceInts, points: DeviceInts, of: IntegerFormat) -> DeviceInts:
    """The function of integers of the format `of` that has the values `points` [of.table_entries] at `of.table_inputs`; any shape.

    It is linear in between: for the value low + step·h + f with 0 ≤ f < step, it is `p[h] + floor(((p[h + 1] − p[h])·f + step/2) / step)`.
    All in integers: what is between two points is rounded to the nearest, ties up, and no result leaves the interval of its two points.
    """
    shift = of.table_step.bit_length() - 1
    place, fraction = (values >> shift).astype(np.intp) - (of.low >> shift), (values & (of.table_step - 1)).astype(np.int32)
    first = points[place].astype(np.int32)
    steps = points[place + 1].astype(np.int32) - first
    result: DeviceInts = (first + ((steps * fraction + of.table_step // 2) >> shift)).astype(of.numpy)
    return result


ZERO_SCALE = 2.0**-24
"""The scale of a value that is always zero. A layer that reads it has its bias in units of this scale times that of the weights. So the
unit must be small beside any bias that matters."""


def affine_parameters(low: float, high: float, to: IntegerFormat = I8) -> tuple[float, int]:
    """Scale (a float32 value) and zero point of the integers that cover low…high and zero; 0 in a symmetric format.

    Zero is always representable, so that padding and ReLU are exact. A range of nothing but zero gets `ZERO_SCALE`.
    """
    # lab 3 begin: choose scale and zero point of a range
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32(max(-low, high) / to.high if to.symmetric else (high - low) / (to.high - to.low))
    if not scale >= np.finfo(np.float32).tiny:
        return ZERO_SCALE, 0
    return float(scale), 0 if to.symmetric else int(np.clip(np.rint(to.low - low / float(scale)), to.low, to.high))
    # lab 3 end


def column_bound(weights: Int8, largest_input: int) -> Int64:
    """For each column the largest possible magnitude of a partial sum, in any order: max|x| * sum_k |w[k, n]|. int64 [N]."""
    bound: Int64 = np.abs(weights.astype(np.int16)).sum(axis=0, dtype=np.int64) * largest_input
    return bound


def read_only(array: AnyArray) -> AnyArray:
    """The array, for reading only: a view that refuses to be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def place_outside(numbers: AnyArray, count: int) -> tuple[int, ...] | None:
    """The index of the first number that isn't in 0…count - 1; None where all are."""
    found = numbers.astype(np.uint32)  # negative ones are large
    if not numbers.size or found.item(found.argmax()) < count:
        return None
    return place_of_largest((numbers < 0) | (numbers >= count))


def place_of_largest(array: AnyArray) -> tuple[int, ...]:
    """The index of the largest element, the first of them; of booleans, of the first that holds."""
    return tuple(int(i) for i in np.unravel_index(int(array.argmax()), array.shape))
