"""How many examples Hypothesis draws for a test."""

from __future__ import annotations

from hypothesis import settings

SOAKED = 5_000
"""In `make soak`, of a property that says no number of its own."""


def examples(usual: int, soaked: int) -> settings:
    """`usual` of them, and `soaked` in `make soak`: what takes ten to twenty seconds of a processor, measured once for each property."""
    return settings(max_examples=soaked if settings.default.max_examples == SOAKED else usual)
