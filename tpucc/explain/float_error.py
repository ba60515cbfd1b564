"""How far the outputs of a program are from float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpucc.explain.noise import Noise
from tpucc.ir import Graph
from tpucc.ir.dataflow import constant_values
from tpucc.numerics import AnyArray
from tpucc.ops import quantizes
from tpucc.runtime.batches import Arrays


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """An output against the float32 reference. `snr` is the signal-to-noise ratio in decibels, for values that aren't `constant`; see
    `Noise.sqnr`."""

    name: str
    largest: float
    mean: float
    snr: float
    constant: bool


ROUNDED = "float32 rounds the values that the source quantises, too; compare with the network before it was quantised"
"""What to say beside `float_reference` of a source that `quantises_values`."""


def quantises_values(graph: Graph) -> bool:
    """Whether a graph of operators quantises values that depend on inputs, and not weights alone."""
    constants = constant_values(graph)
    return any(quantizes(node.op) and node.operands[0] not in constants for node in graph)


def rounded_notes(graph: Graph | None) -> tuple[str, ...]:
    """The note on float32 of a source that quantises values; none for others."""
    return (ROUNDED,) if graph is not None and quantises_values(graph) else ()


def error_statistics(outputs: Arrays, reference: Arrays) -> list[ErrorStatistics]:
    """Each float output against the reference; integer outputs (argmax) are left to the accuracy."""
    return [_statistics(name, outputs[name], reference[name]) for name in outputs if outputs[name].dtype == np.float32]


def _statistics(name: str, got: AnyArray, wanted: AnyArray) -> ErrorStatistics:
    noise = Noise()
    noise.add(wanted.astype(np.float64), got.astype(np.float64))
    return ErrorStatistics(name, noise.largest, noise.mean, noise.sqnr, noise.constant)
