"""Seeds of random tests: in `make soak`, and there alone, others in each run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

VARIABLE = "TPUCC_TEST_SEED"
"""The run's seed, for all its processes; `tests/conftest.py` sets it."""
SHARE = "TPUCC_TEST_SHARE"
"""How many of a hundred random cases a soak has, likewise."""
APART = 1_000_000
"""Between the seeds of two runs: no test has as many cases."""
LARGEST = 2_000
"""The largest seed of a run: seeds of cases stay below 2^31."""


def run_seed() -> int:
    """0 in ordinary runs."""
    return int(os.environ.get(VARIABLE, "0"))


def share() -> int:
    """All, where nobody says otherwise."""
    return int(os.environ.get(SHARE, "100"))


def shared(cases: int) -> int:
    """So many of a test's random cases a soak has: at least one."""
    return max(cases * share() // 100, 1)


def at_length(cases: int, each: int) -> Callable[[Test], Test]:
    """A test of `make soak` that is called with the argument `seeds`, a range of `each` of them, until there were so many `cases`, or the
    soak's share of them.

    A case's seed is the run's seed times a million, and a number. So `--seed` and the test's name say which cases they are.
    """
    first, cases = run_seed() * APART, shared(cases)
    parts = [pytest.param(range(first + at, first + min(at + each, cases)), id=str(at)) for at in range(0, cases, each)]

    def marked(test: Test) -> Test:
        return pytest.mark.soak(pytest.mark.parametrize("seeds", parts)(test))

    return marked
