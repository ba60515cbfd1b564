"""What tests compare with of tpucc's own, in archives from which it is taken out: it is recorded when a lab is packed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tpucc.labs.calls import packed_call, read_value

Given = ParamSpec("Given")
Result = TypeVar("Result")
FILE = Path(__file__).with_name("recorded.json")
"""The results by their keys, where a lab was packed."""
_RECORDINGS: list[dict[str, Any]] = []


def recorded(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, whose results an archive has recorded. There it is called only with arguments that no result was recorded for.

    Arguments and results are values that a file of a call can have (`calls`).
    """

    @wraps(function)
    def asked(*given: Given.args, **named: Given.kwargs) -> Result:
        if not _RECORDINGS and not packed():
            return function(*given, **named)
        key = f"{function.__name__} {sha256(packed_call((*given, named))).hexdigest()}"
        if key in _known():
            found: Result = read_value(_known()[key])
            return found
        result = function(*given, **named)
        for recording in _RECORDINGS:
            recording[key] = result
        return result

    return asked


def packed() -> bool:
    """Whether this is the tpucc of an archive for students: it has recorded results in the place of the grader's own answers."""
    return FILE.is_file()


@contextmanager
def recording() -> Iterator[dict[str, Any]]:
    """All results that are made in the body, by their keys."""
    made: dict[str, Any] = {}
    _RECORDINGS.append(made)
    try:
        yield made
    finally:
        _RECORDINGS.remove(made)


@cache
def _known() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    return found
