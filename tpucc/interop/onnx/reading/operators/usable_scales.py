"""Rejects scales that tpucc can't represent. ONNX allows any number as a scale, so the file is valid."""

from __future__ import annotations

import numpy as np

from tpucc.interop.onnx.reading.files.problems import Unsupported, named
from tpucc.numerics import AnyArray

SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest scale that integers have here."""
ALWAYS_ZERO = (
    "a quantiser writes such a scale where what it measured is always 0: measure with other examples, or leave these values in float32"
)
BELOW_ZERO = "no quantiser writes a scale below 0, so something has changed it since: quantise the network again"
INFINITE = (
    "its quantiser saw an infinite value there, as masks have it: let the network mask by -30 in the place of -inf, and quantise it again "
    "(-1e4 would be finite, and leave the scores beside it no steps); or leave out the nodes that add the mask and take the softmax of it: "
    "nodes_to_exclude of quantize_static takes their names in the file before it is quantised"
)
NO_NUMBER = (
    "its quantiser saw NaN there: run the network in float32 with the examples that it measured, find the first value that is NaN, and "
    "quantise it again without"
)


def require_usable(scale: float, name: str) -> None:
    """Raises `Unsupported` for a scale that values can't have."""
    require_finite(np.asarray(scale), name)
    if scale < SMALLEST:
        why = BELOW_ZERO if scale < 0 else ALWAYS_ZERO
        raise Unsupported(f"the scale {named(name)} is {scale:g}, and the smallest one here is {SMALLEST:g}", why)


def require_finite(scale: AnyArray, name: str) -> None:
    """Raises `Unsupported` for scales of which one is infinite or NaN."""
    wrong = scale[~np.isfinite(scale)].reshape(-1)
    if wrong.size:
        raise Unsupported(f"the scale {named(name)} is {wrong[0]}", NO_NUMBER if np.isnan(wrong[0]) else INFINITE)
