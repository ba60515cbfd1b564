"""Signal and noise: how far values are from what they stand for.

The measure is the signal-to-quantisation-noise ratio, SQNR: 10 · log10(Σ real² / Σ (integer's value − real)²) decibels. A value that is
uniform over all of the integers' range has an SQNR of about 6 dB a bit (Bennett, "Spectra of Quantized Signals", 1948).
"""

from __future__ import annotations

import math

import numpy as np

from tpucc.ir import Graph
from tpucc.ir.dataflow import constant_values
from tpucc.numerics import AnyArray
from tpucc.ops import quantizes
from tpucc.runtime.batches import Arrays

FLOAT32 = 20 * math.log10(2**24)
"""The ratio in decibels of values that are rounded to float32, which has 24 bits: no measurement against float32 gives more."""


class Noise:
    """Sums up signal and noise, batch by batch."""

    def __init__(self) -> None:
        self._signal = self._noise = self._absolute = 0.0
        self._count = 0
        self._seen = (math.inf, -math.inf)
        self.largest = 0.0

    def add(self, wanted: AnyArray, found: AnyArray) -> None:
        real, found = wanted.astype(np.float64), found.astype(np.float64)
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


def noise_of(outputs: Arrays, reference: Arrays) -> dict[str, Noise]:
    """Each float output against the float32 reference, by its name; integer outputs (argmax) are left to the accuracy."""
    found = {name: Noise() for name, values in outputs.items() if values.dtype == np.float32}
    for name, noise in found.items():
        noise.add(reference[name], outputs[name])
    return found


ROUNDED = "float32 rounds the values that the source quantises, too; compare with the network before it was quantised"
"""What to say beside `float_reference` of a source that `quantises_values`."""


def quantises_values(graph: Graph) -> bool:
    """Whether a graph of operators quantises values that depend on inputs, and not weights alone."""
    constants = constant_values(graph)
    return any(quantizes(node.op) and node.operands[0] not in constants for node in graph)


def rounded_notes(graph: Graph | None) -> tuple[str, ...]:
    """The note on float32 of a source that quantises values; none for others."""
    return (ROUNDED,) if graph is not None and quantises_values(graph) else ()
