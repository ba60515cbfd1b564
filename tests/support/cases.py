"""Many small cases as one test: a test of its own takes pytest 2 ms, which is more than most cases compute."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SHOWN = 5
"""Cases that fail of which the message has the whole traceback."""


def each(cases: Mapping[str, Sequence[Any]]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Makes of a function a test that calls it with the arguments of every case, and fails with the titles of those that fail.

    For functions without fixtures. Cases that take long are parametrised, so that workers share them.
    """

    def grouped(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            failed: dict[str, str] = {}
            for title, arguments in cases.items():
                try:
                    check(*arguments)
                except Exception as error:
                    failed[title] = "".join(traceback.format_exception(error))
            whole = "\n".join(f"{title}\n{text}" for title, text in list(failed.items())[:SHOWN])
            assert not failed, f"{len(failed)} of {len(cases)} cases fail: {', '.join(failed)}\n{whole}"

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return grouped


def titled(cases: Mapping[str, Any]) -> dict[str, tuple[Any]]:
    """Cases of one argument."""
    return {title: (case,) for title, case in cases.items()}
