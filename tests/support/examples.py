"""How many examples Hypothesis draws for a test."""

from __future__ import annotations

from hypothesis import settings

from tests.support.seeds import run_seed, shared

SOAKED = 5_000
"""In a whole `make soak`, of a property that says no number of its own."""


def examples(usual: int, soaked: int) -> settings:
    """`usual` of them, and of `soaked` its share in a soak: all take ten to twenty seconds, measured once for each property."""
    return settings(max_examples=shared(soaked) if run_seed() else usual)
