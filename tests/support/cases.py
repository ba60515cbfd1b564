"""Many small cases as one test: a test of its own takes pytest 2 ms, which is more than most cases compute."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest

SHOWN = 5
"""Cases that fail of which the message has the whole traceback."""


def each(cases: Mapping[str, Sequence[Any]], usual: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes of a function a test that calls it with the arguments of every case, and fails with the titles of those that fail.

    Without `--soak`, of random cases only the first `usual`. For functions without fixtures. Cases that take long are parametrised, so that
    workers share them.
    """

    def grouped(check: Callable[..., None]) -> Callable[..., None]:
        def test(pytestconfig: pytest.Config) -> None:
            failed: dict[str, str] = {}
            for title, arguments in islice(cases.items(), None if pytestconfig.getoption("soak") else usual):
                try:
                    check(*arguments)
                except Exception as error:
                    failed[title] = "".join(traceback.format_exception(error))
            whole = "\n".join(f"{title}\n{text}" for title, text in list(failed.items())[:SHOWN])
            assert not failed, f"{len(failed)} of {len(cases)} cases fail: {', '.join(failed)}\n{whole}"

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return grouped


def one_of(step: int, cases: Iterable[Any]) -> list[Any]:
    """The parameters of a test: the first of every `step` cases in each run, the others in `make soak`."""
    return [pytest.param(case, marks=pytest.mark.soak if index % step else ()) for index, case in enumerate(cases)]


def titled(cases: Mapping[str, Any]) -> dict[str, tuple[Any]]:
    """Cases of one argument."""
    return {title: (case,) for title, case in cases.items()}
