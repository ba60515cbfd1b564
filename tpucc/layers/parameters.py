"""From real numbers to the constants of layers: int8 weights, int32 biases, multipliers, bounds of clamps, tables.

Arrays in, arrays out; the rules are those of `tpucc.numerics`. Functions that can't give what the machine needs raise `UnfitError`, which
the quantiser turns into a message with the place in the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.ir import Quantisation
from tpucc.ir.dtypes import I8, IntegerFormat
from tpucc.numerics import (
    INT32_MAX,
    AnyArray,
    DeviceInts,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    affine_parameters,
    column_bound,
    multiplier,
    quantise_bias,
    quantise_weights,
    weight_scales,
)

BIAS_BOUND = 2**30
"""No bias is larger in units of the accumulator: the other half of int32 is left to the products."""
MOST_GROWTH = 16
"""Scales of weights grow no more than this for the accumulators' sake: five bits of a weight are left then."""

GROWTH_STEP = 1.001
"""A scale grows by so much more than its sums are too large by, for the weights are rounded."""


class UnfitError(ArithmeticError):
    """Numbers that no parameters of a layer can represent. `code` is the diagnostic's; the text says what is wrong."""

    def __init__(self, code: str, message: str, help: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


@dataclass(frozen=True, slots=True, eq=False)
class Requantisation:
    """How an FC layer's sums become its result: `bias` int32 [N] and `multiplier` float32 [N]."""

    bias: Int32
    multiplier: Float32


def fitting_scales(weights: AnyArray, bias: AnyArray, x: Quantisation, per_channel: bool, of: IntegerFormat) -> Float32:
    """Scales float32 [N] of the weights [K, N], such that the bias [N] fits the accumulators; `of` and `x` are how the input is held.

    They are those of `weight_scales`, but where a bias would be beyond `BIAS_BOUND` in units of s_x · s_w (a column whose weights are
    nearly zero, and whose bias isn't) the column's scale grows until it is not: its products are then too small to matter.
    With inputs of int16, the sums of products may overflow too: then `_roomy` makes the scales larger.
    """
    least = np.abs(bias).astype(np.float64) / (float(np.float32(x.scale)) * BIAS_BOUND)
    if not per_channel:
        least = np.full_like(least, least.max(initial=0.0))
    scales = np.maximum(weight_scales(weights, per_channel), least.astype(np.float32))
    return _roomy(weights, bias, x, scales, per_channel, of) if of.makes_room else scales


def _roomy(weights: AnyArray, bias: AnyArray, x: Quantisation, scales: Float32, per_channel: bool, of: IntegerFormat) -> Float32:
    """The scales, larger where the int32 accumulators could overflow: weights then use fewer than eight bits, and inputs all of theirs.

    Where `MOST_GROWTH` isn't enough they still could, which `require_accumulators` finds.
    """
    limit = scales * np.float32(MOST_GROWTH)
    while True:
        integers = quantise_weights(weights, scales)
        sums = column_bound(integers, of.largest) + np.abs(quantise_bias(bias, scales, x.scale, x.zero_point, integers))
        over = np.maximum(sums / INT32_MAX, 1.0)
        if ((over <= 1) | (scales >= limit)).all():
            return scales
        factor = over if per_channel else np.full_like(over, over.max())
        grown = np.where(factor > 1, scales * (factor * GROWTH_STEP), scales)
        scales = np.minimum(grown.astype(np.float32), limit)


def requantisation(weights: Int8, scales: Float32, bias: AnyArray, x: Quantisation, y: Quantisation, of: IntegerFormat) -> Requantisation:
    """Bias and multiplier of an FC layer with int8 weights [K, N] of these scales [N] and a real bias [N], from x to y, both held as `of`.

    Raises `UnfitError` when the int32 accumulators could overflow, whatever the input, or a multiplier is no finite float32 number.
    """
    folded = quantise_bias(bias, scales, x.scale, x.zero_point, weights)
    require_accumulators(weights, folded, of)
    factors = multiplier(x.scale, scales, y.scale)
    require_finite(factors)
    return Requantisation(folded.astype(np.int32), factors)


def require_accumulators(weights: Int8, bias: Int64 | Int32, of: IntegerFormat) -> None:
    """Raises `UnfitError` unless `max|x| · Σ|w| + |bias|` fits int32 for every column: the verifier checks the same (V0901). `of` is how x
    is held."""
    largest = int((column_bound(weights, of.largest) + np.abs(bias.astype(np.int64))).max(initial=0))
    if largest > INT32_MAX:
        raise UnfitError(
            "E0803",
            f"sums of {weights.shape[0]:,} products and the bias may reach {largest:,}, and the accumulators hold {INT32_MAX:,}",
            "multiply parts of the columns of the left side by parts of the rows of the weights, and add the products",
        )


def fits_weighted_sums(positions: int, bias: AnyArray) -> bool:
    """Whether the sums of so many products of two int8 values, and a bias of `bias`, fit int32 whatever the values are."""
    return positions * I8.largest * I8.largest + int(np.abs(bias.astype(np.int64)).max(initial=0)) <= INT32_MAX


def require_finite(factors: AnyArray) -> None:
    """Raises `UnfitError` unless every multiplier is a finite float32 number."""
    if not np.isfinite(factors).all():
        raise UnfitError(
            "E0804",
            "the operands are so much larger than the result that their ratio isn't a float32 number",
            "check the ranges of the inputs and the calibration data; scale the operands down",
        )


def scaling(scale: float, by: float, result: float) -> float:
    """The multiplier `scale · by / result`. Raises `UnfitError` when float32 can't hold it."""
    factor = multiplier(scale, by, result)
    require_finite(factor)
    return float(factor)


def quantisation_of(values: AnyArray, to: IntegerFormat) -> Quantisation:
    """The scale and the zero point that cover the values of a constant."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return Quantisation(*affine_parameters(low, high, to))


def clamp_bounds(low: float, high: float, y: Quantisation, to: IntegerFormat) -> tuple[int | None, int | None]:
    """The integers between which a clamp of real values to low…high keeps the quantised ones; None where the format ends before."""
    first, last = (_bound(real, y, to) for real in (low, high))
    return None if first == to.low else first, None if last == to.high else last


def function_table(function: Callable[[Float64], Float64], x: Quantisation, y: Quantisation, of: IntegerFormat) -> DeviceInts:
    """The quantised values of `function`; all in float64. `of` is how x and y are held.

    Entry i is the value at the integer `of.table_inputs[i]`; what lies between two of them is interpolated (see `numerics.interpolate`).

    Raises `UnfitError` when the function has no value somewhere.
    """
    inputs: Float64 = (of.table_inputs - x.zero_point) * np.float64(np.float32(x.scale))
    with np.errstate(all="ignore"):
        results = np.asarray(function(inputs), np.float64) / float(np.float32(y.scale))
    if np.isnan(results).any():
        raise UnfitError("E0804", "the function has no value for a part of its input's range", "check the range of its input")
    table: DeviceInts = np.clip(np.rint(results) + y.zero_point, of.low, of.high).astype(of.numpy)
    return table


def _bound(real: float, y: Quantisation, to: IntegerFormat) -> int:
    if math.isinf(real):
        return to.low if real < 0 else to.high
    rounded = np.rint(np.float64(real) / float(np.float32(y.scale))) + y.zero_point
    return int(np.clip(rounded, to.low, to.high))
