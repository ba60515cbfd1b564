"""Signal and noise: how far values are from what they stand for.

The measure is the signal-to-quantisation-noise ratio, SQNR: 10 · log10(Σ real² / Σ (integer's value − real)²) decibels. A value that is
uniform over all of the integers' range has an SQNR of about 6 dB a bit (Bennett, "Spectra of Quantized Signals", 1948).
"""

from __future__ import annotations

import math

import numpy as np

from tpucc.numerics import Float64

FLOAT32 = 20 * math.log10(2**24)
"""The ratio in decibels of values that are rounded to float32, which has 24 bits: no measurement against float32 gives more."""


class Noise:
    """Sums up signal and noise, batch by batch."""

    def __init__(self) -> None:
        self._signal = self._noise = self._absolute = 0.0
        self._count = 0
        self._seen = (math.inf, -math.inf)
        self.largest = 0.0

    def add(self, real: Float64, found: Float64) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(found - real)
            if not np.isfinite(error).all():
                error[(found == real) | (np.isnan(found) & np.isnan(real))] = 0.0
                real = real[np.isfinite(real)]
            self._seen = min(self._seen[0], float(real.min(initial=math.inf))), max(self._seen[1], float(real.max(initial=-math.inf)))
            self._signal += float(np.square(real).sum())
            self._noise += float(np.square(error).sum())
            self._absolute += float(error.sum())
        self._count += error.size
        self.largest = float(np.maximum(self.largest, error.max(initial=0.0)))  # NaN if one of them is

    @property
    def mean(self) -> float:
        return self._absolute / max(1, self._count)

    @property
    def constant(self) -> bool:
        """Whether all real values are one value."""
        return self._seen[0] == self._seen[1]

    @property
    def sqnr(self) -> float:
        """In decibels, `FLOAT32` at most; infinite when nothing differs, and for a constant signal; minus infinite for noise without a
        signal, and for noise that isn't finite."""
        if self._noise == 0:
            return math.inf
        if not (math.isfinite(self._noise) and self._signal):
            return -math.inf
        return math.inf if self.constant else min(10 * math.log10(self._signal / self._noise), FLOAT32)
