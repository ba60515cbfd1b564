"""From real numbers to the constants of layers: int8 weights, int32 biases, multipliers, bounds of clamps, tables.

Arrays in, arrays out; the rules are those of `tpucc.numerics`. Functions that can't give what the machine needs raise `UnfitError`, which
the quantiser turns into a message with the place in the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tpucc.ir.types import Quantisation
from tpucc.numerics import (
    INT8_HIGH,
    INT8_LOW,
    INT32_MAX,
    AnyArray,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    affine_parameters,
    column_bound,
    multiplier,
    quantise_bias,
    weight_scales,
)

BIAS_BOUND = 2**30
"""No bias is larger in units of the accumulator: the other half of int32 is left to the products."""
LARGEST_INPUT = -INT8_LOW


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


def fitting_scales(weights: AnyArray, bias: AnyArray, x: Quantisation, per_channel: bool) -> Float32:
    """Scales float32 [N] of the weights [K, N], such that the bias [N] fits the accumulators.

    They are those of `weight_scales`, but where a bias would be beyond `BIAS_BOUND` in units of s_x · s_w (a column of weights that are all
    but zero, with a bias that isn't) the column's scale grows until it is not: its products are then too small to matter.
    """
    least = np.abs(bias).astype(np.float64) / (float(np.float32(x.scale)) * BIAS_BOUND)
    if not per_channel:
        least = np.full_like(least, least.max(initial=0.0))
    return np.maximum(weight_scales(weights, per_channel), least.astype(np.float32))


def requantisation(weights: Int8, scales: Float32, bias: AnyArray, x: Quantisation, y: Quantisation) -> Requantisation:
    """Bias and multiplier of an FC layer with int8 weights [K, N] of these scales [N] and a real bias [N], from x to y.

    Raises `UnfitError` when the int32 accumulators could overflow, whatever the input, or a multiplier is no finite float32 number.
    """
    folded = quantise_bias(bias, scales, x.scale, x.zero_point, weights)
    require_accumulators(weights, folded)
    factors = multiplier(x.scale, scales, y.scale)
    require_finite(factors)
    return Requantisation(folded.astype(np.int32), factors)


def require_accumulators(weights: Int8, bias: Int64 | Int32) -> None:
    """Raises `UnfitError` unless `128 · Σ|w| + |bias|` fits int32 for every column: the verifier's rule 9."""
    largest = int((column_bound(weights, LARGEST_INPUT) + np.abs(bias.astype(np.int64))).max(initial=0))
    if largest > INT32_MAX:
        raise UnfitError(
            "E0803",
            f"sums of {weights.shape[0]:,} products and the bias may reach {largest:,}, and the accumulators hold {INT32_MAX:,}",
            "multiply parts of the columns of the left side by parts of the rows of the weights, and add the products",
        )


def require_finite(factors: AnyArray) -> None:
    """Raises `UnfitError` unless every multiplier is a finite float32 number."""
    if not np.isfinite(factors).all():
        raise UnfitError(
            "E0804",
            "the operands are so much larger than the result that their ratio is no float32 number",
            "check the ranges of the inputs and the calibration data; scale the operands down",
        )


def scaling(scale: float, by: float, result: float) -> float:
    """The multiplier `scale · by / result` of a vector layer. Raises `UnfitError`."""
    factor = multiplier(scale, by, result)
    require_finite(factor)
    return float(factor)


def quantisation_of(values: AnyArray) -> Quantisation:
    """The parameters that cover a constant's own values."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return Quantisation(*affine_parameters(low, high))


def clamp_bounds(low: float, high: float, y: Quantisation) -> tuple[int, int]:
    """The integers between which a clamp of real values to low…high keeps the quantised ones; infinite ends are open."""
    return _bound(low, y), _bound(high, y)


def function_table(function: Callable[[Float64], Float64], x: Quantisation, y: Quantisation) -> Int8:
    """int8 [256]: entry i is the quantised value of `function` at the real value of i - 128; all in float64.

    Raises `UnfitError` when the function has no value somewhere.
    """
    inputs: Float64 = (np.arange(INT8_LOW, INT8_HIGH + 1) - x.zero_point) * np.float64(np.float32(x.scale))
    with np.errstate(all="ignore"):
        results = np.asarray(function(inputs), np.float64) / float(np.float32(y.scale))
    if np.isnan(results).any():
        raise UnfitError("E0804", "the function has no value for a part of its input's range", "check the range of its input")
    table: Int8 = np.clip(np.rint(results) + y.zero_point, INT8_LOW, INT8_HIGH).astype(np.int8)
    return table


def _bound(real: float, y: Quantisation) -> int:
    if math.isinf(real):
        return INT8_LOW if real < 0 else INT8_HIGH
    rounded = np.rint(np.float64(real) / float(np.float32(y.scale))) + y.zero_point
    return int(np.clip(rounded, INT8_LOW, INT8_HIGH))
