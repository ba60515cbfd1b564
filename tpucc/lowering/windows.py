"""Pooling windows along one axis, by what they see of the image."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive windows that see equally many pixels, one stride apart.

    `first` of the `outputs` windows is the first; its first real pixel is `pixel`, and each sees `pixels`.
    """

    first: int
    outputs: int
    pixel: int
    pixels: int


def runs(size: int, window: int, stride: int, before: int, outputs: int) -> list[Run]:
    """The windows over an axis of `size` pixels with `before` of padding in front; only real pixels are seen."""
    spans = []
    for output in range(outputs):
        start = output * stride - before
        first, last = max(0, start), min(size, start + window)
        spans.append((output, first, last - first))
    alike = groupby(spans, key=lambda span: (span[1] - span[0] * stride, span[2]))
    return [Run(found[0][0], len(found), found[0][1], found[0][2]) for found in (list(group) for _, group in alike)]
