"""The samples of a tensor and the range that was chosen for it: a histogram above a bracket."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tpucc.numerics import Float32, Float64
from tpucc.see.charts.chart import Scale, ticks
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind
from tpucc.see.svg import Markup, joined, kind_rect, label, line, picture, title

WIDTH, HEIGHT = 900.0, 240.0
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


def ranges_svg(samples: Float32, chosen: Range, name: str, words: str) -> str:
    """The same as an SVG."""
    told = f"{words}; a bar is a count of samples, logarithmic, and the bracket the range of the integers"
    head = heading(f"The samples of {name}, and the range of its integers", told, ())
    counts, edges = _histogram(samples, chosen)
    top = EDGE + head.height + 10
    across, up = Scale(edges[0], edges[-1], 40.0, WIDTH - 40), Scale(0, float(np.log1p(counts.max())), top + HEIGHT, top)
    bars = []
    for count, left, right in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if count:
            high = up(float(np.log1p(count)))
            said = title(f"{count:,} samples from {left:.3g} to {right:.3g}")
            bars.append(kind_rect(Kind.MATRIX, across(left), high, across(right) - across(left), top + HEIGHT - high, said))
    below = top + HEIGHT + 48
    ends = [across(end) for end in chosen]
    bracket = [line(ends[0], below, ends[1], below, "ink"), *(line(x, below - 6, x, below + 6, "ink") for x in ends)]
    middle = min(WIDTH - 140, max(140.0, sum(ends) / 2))
    said = label(f"integers from {chosen[0]:.3g} to {chosen[1]:.3g}", middle, below + 20, anchor="middle")
    axis = joined(_axis(across, top + HEIGHT))
    return picture("samples", told, max(WIDTH, head.width + 2 * EDGE), below + 34, head.markup, joined(bars), axis, joined(bracket), said)


def _axis(across: Scale, y: float) -> Iterator[Markup]:
    """The values of the samples, below the bars, and what they are."""
    yield label("value of a sample", across.end, y + 32, anchor="end")
    yield line(across.start, y, across.end, y)
    step = ticks(across.high - across.low)[1]
    for count in range(math.ceil(across.low / step), math.floor(across.high / step) + 1):
        x = across(count * step)
        yield joined([line(x, y, x, y + 5), label(f"{count * step:g}", x, y + 18, anchor="middle")])


def _histogram(samples: Float32, chosen: Range) -> tuple[Float64, Float64]:
    ends = [min(float(samples.min()), chosen[0]), max(float(samples.max()), chosen[1])]
    counts, edges = np.histogram(samples.astype(np.float64), BINS, range=(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1))
    return counts.astype(np.float64), edges
