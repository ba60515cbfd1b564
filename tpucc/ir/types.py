"""The types of values: data type, static shape, and what is known of the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tpucc.ir.dtypes import FORMATS


@dataclass(frozen=True, slots=True)
class Range:
    """The interval that real values lie in; from calibration or from the source. Finite, low below or equal to high.

    `synthetic` says that it was measured on synthetic inputs, or that the values before the activation of its node were.
    It is no part of the text form.
    """

    low: float
    high: float
    synthetic: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return f"[{self.low!r}, {self.high!r}]"

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high), self.synthetic or other.synthetic)


def as_float32(number: float) -> float:
    """The float32 value nearest to a number; infinite past the largest."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


@dataclass(frozen=True, slots=True)
class Quantisation:
    """real = scale * (integer - zero_point). `scale` is a float32 value, to which any other is rounded, so that all agree on it."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_float32(self.scale))

    def __str__(self) -> str:
        return f"scale {self.scale!r} zero {self.zero_point}"


@dataclass(frozen=True, slots=True)
class TensorType:
    """`f32[150, 4] in [0.0, 8.0]`, `i8[150, 256] scale 0.01 zero -3`.

    `range` is the interval of the real values when it is known; `quantisation` belongs to the integer types of the device, or to an
    `f32` value whose parameters the source fixes (`quantize`) and the device will use.
    """

    dtype: str
    shape: tuple[int, ...]
    range: Range | None = None
    quantisation: Quantisation | None = None

    def __str__(self) -> str:
        text = self.brief
        if self.range is not None:
            text += f" in {self.range}"
        if self.quantisation is not None:
            text += f" {self.quantisation}"
        return text

    @property
    def brief(self) -> str:
        """Data type and shape only: `f32[150, 4]`."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, as an unbounded integer."""
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """Rows of the device's two-dimensional layout: the product of all sizes but the last."""
        return math.prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        """Columns of the device's two-dimensional layout: the last size, 1 for a scalar."""
        return self.shape[-1] if self.shape else 1

    @property
    def numpy(self) -> np.dtype[Any]:
        return FORMATS[self.dtype].numpy

    def plain(self) -> TensorType:
        """The same data type and shape, nothing said of the numbers."""
        return TensorType(self.dtype, self.shape)

    def with_range(self, known: Range | None) -> TensorType:
        return replace(self, range=known)

    def with_synthetic(self, before: Range) -> TensorType:
        """Of a value whose layer depends on another range too: that is `before`. Its own range is synthetic where that range is."""
        if self.range is None or not before.synthetic:
            return self
        return self.with_range(replace(self.range, synthetic=True))

    def with_quantisation(self, quantisation: Quantisation | None) -> TensorType:
        return replace(self, quantisation=quantisation)


def f32(*shape: int) -> TensorType:
    """`f32(2, 3)` is `f32[2, 3]`."""
    return TensorType("f32", shape)
