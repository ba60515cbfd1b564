"""The error that quantising makes in a layer: its values in float32 against the integers, real = scale · (integer − zero point)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.explain.histogram import Counter, Histogram
from tpucc.explain.noise import FLOAT32, Noise
from tpucc.ir import Quantisation
from tpucc.ir.dtypes import IntegerFormat
from tpucc.numerics import AnyArray, DeviceInts, Float64


@dataclass(frozen=True, slots=True)
class LayerError:
    """The quantisation error of one layer, over `values` values of `rows` rows of examples.

    `name` and `origin` are those of the layer's node; `layer` is its number in the program. `kind` is fc, conv, pool, vector or move; or
    quantize, for a value on its way into the device: its `layer` is -1. `seen` are the lowest and the highest real value, `limits` those
    that the integers can say. `below` and `above` are the shares of values that lie more than half a step beyond these: they saturate.

    `mean_error`, `largest_error` and `sqnr` are of the layer as it runs, with all errors of the layers before it (*cumulative*).
    `own_sqnr` is of the layer *alone*: its inputs are the float32 values, each quantised once. Both are in decibels, infinite without an
    error.
    """

    name: str
    layer: int
    kind: str
    origin: Origin
    rows: int
    values: int
    quantisation: Quantisation
    seen: tuple[float, float]
    limits: tuple[float, float]
    below: float
    above: float
    mean_error: float
    largest_error: float
    sqnr: float
    own_sqnr: float
    histogram: Histogram
    by_lanes: bool = False
    """Whether the vector unit computes a convolution, lane by lane."""

    @property
    def constant(self) -> bool:
        """Whether all values are one value in float32: then no ratio says how exact they are."""
        return self.seen[0] == self.seen[1]

    @property
    def multiplies(self) -> bool:
        """Whether the matrix unit computes its products."""
        return self.kind in ("fc", "conv") and not self.by_lanes

    @property
    def line(self) -> int:
        """The line of the model that the layer comes from, 0 if none."""
        return self.origin.line

    @property
    def scale(self) -> float:
        return self.quantisation.scale

    @property
    def zero_point(self) -> int:
        return self.quantisation.zero_point

    @property
    def saturated(self) -> float:
        """The share of values beyond the integers' range."""
        return self.below + self.above

    @property
    def mean_steps(self) -> float:
        """The mean absolute error in steps of the scale."""
        return self.mean_error / self.scale

    @property
    def largest_steps(self) -> float:
        """The largest absolute error in steps of the scale."""
        return self.largest_error / self.scale


class ErrorMeter:
    """Collects a layer's values, batch by batch. `held` says how they are held."""

    def __init__(self, held: Quantisation, format: IntegerFormat) -> None:
        self._held = held
        self._format = format
        self._bounds = format.low - held.zero_point, format.high - held.zero_point
        self.limits = (held.scale * self._bounds[0], held.scale * self._bounds[1])
        self._seen = (math.inf, -math.inf)
        self._values = self._below = self._above = 0
        self._noise, self._alone = Noise(), Noise()
        self._counter = Counter(*self.limits)

    def add(self, real: AnyArray, integers: DeviceInts) -> None:
        """A batch of float32 values, and the integers that the device has for them; of equal sizes."""
        exact = _finite(real)
        steps = np.rint(exact / self._held.scale)
        self._values += exact.size
        self._below += int(np.count_nonzero(steps < self._bounds[0]))
        self._above += int(np.count_nonzero(steps > self._bounds[1]))
        low, high = float(exact.min()), float(exact.max())
        self._seen = min(self._seen[0], low), max(self._seen[1], high)
        fits = (steps >= self._bounds[0]) & (steps <= self._bounds[1])
        inside = np.clip(exact, self.limits[0], np.nextafter(self.limits[1], -np.inf))  # what fits is in no bin beyond the range
        self._counter.add(np.where(fits, inside, exact), low, high)
        self._noise.add(exact, self._real(integers))

    def add_alone(self, real: AnyArray, integers: DeviceInts) -> None:
        """A batch of float32 values, and the integers that the layer makes of exactly quantised inputs."""
        self._alone.add(_finite(real), self._real(integers))

    def result(self, name: str, layer: int, kind: str, origin: Origin, rows: int, by_lanes: bool = False) -> LayerError:
        measured = (self._values, self._held, self._seen, self.limits, self._below / self._values, self._above / self._values)
        noise = (self._noise.mean, self._noise.largest, self._noise.sqnr, self._alone.sqnr)
        return LayerError(name, layer, kind, origin, rows, *measured, *noise, self._counter.histogram(), by_lanes)

    def _real(self, integers: DeviceInts) -> Float64:
        values: Float64 = (integers.reshape(-1).astype(np.float64) - self._held.zero_point) * self._held.scale
        return values


def _finite(real: AnyArray) -> Float64:
    """The values as float64 [n]; what overflowed in float32 has its largest magnitude, NaN is 0."""
    values = real.reshape(-1)
    if not np.isfinite(values).all():
        values = np.nan_to_num(values)
    return values.astype(np.float64)


def decibels(ratio: float, constant: bool = False) -> str:
    """`38.5 dB`; `exact` without noise. Of values that are `constant` in float32 `one value`; past what float32 itself has, no number."""
    if ratio == -math.inf:
        return "only noise"
    if constant:
        return "one value"
    if ratio == math.inf:
        return "exact"
    return f"{ratio:.1f} dB" if ratio < FLOAT32 else "over 144 dB"


def unmeasured(ratio: float, constant: bool) -> str:
    """What values are whose ratio measures nothing: `saturated`, as a softmax's ones and zeros are, or constant; empty for others."""
    if constant and ratio > -math.inf:
        return "constant in float32"
    return "saturated" if FLOAT32 <= ratio < math.inf else ""


def as_it_runs(error: LayerError) -> str:
    return decibels(error.sqnr, error.constant)


def alone(error: LayerError) -> str:
    return decibels(error.own_sqnr, error.constant)
