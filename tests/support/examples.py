"""How many examples Hypothesis draws for a test."""

from __future__ import annotations

from hypothesis import settings


def examples(usual: int) -> settings:
    """So many, and as many times more as a profile says that has more than Hypothesis's 100: 25 times in `make soak`."""
    return settings(max_examples=usual * settings.default.max_examples // 100, deadline=None)
