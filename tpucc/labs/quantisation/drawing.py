"""The samples of a tensor and the range that was chosen for it: a histogram above a bracket."""

from __future__ import annotations

import numpy as np

from tpucc.numerics import Float32, Float64

BINS, LINES = 64, 8
Range = tuple[float, float]


def ranges_text(samples: Float32, chosen: Range, name: str) -> str:
    """The histogram in characters, logarithmic upwards, above its axis; below it, `[` and `]` are the ends of the range."""
    counts, edges = _histogram(samples, chosen)
    heights = np.ceil(LINES * np.log1p(counts) / np.log1p(counts.max())).astype(int)
    bars = ["".join("█" if height >= level else " " for height in heights) for level in range(LINES, 0, -1)]
    left, right = (min(BINS - 1, max(0, int(np.searchsorted(edges, end, side="right")) - 1)) for end in chosen)
    bracket = " " * left + ("[" + "─" * (right - left - 1) + "]" if right > left else "|")
    words = f"{name}: samples {samples.min():.3g} to {samples.max():.3g}, integers {chosen[0]:.3g} to {chosen[1]:.3g}"
    first, last = (f"{edges[end]:.3g}" for end in (0, -1))
    axis = f"{first}{last:>{BINS - len(first)}}"
    return "\n".join(part.rstrip() for part in (words, *bars, "─" * BINS, axis, bracket))


def _histogram(samples: Float32, chosen: Range) -> tuple[Float64, Float64]:
    ends = [min(float(samples.min()), chosen[0]), max(float(samples.max()), chosen[1])]
    counts, edges = np.histogram(samples.astype(np.float64), BINS, range=(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1))
    return counts.astype(np.float64), edges
