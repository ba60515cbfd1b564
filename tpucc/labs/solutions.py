"""A lab's own solution, which its tests compare a submission's answers with; and what archives for students have in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from tpucc.guest.values import Plain, packed, unpacked
from tpucc.labs.call_text import WHOLE, shown
from tpucc.labs.here import Here, executed
from tpucc.labs.lab import MATERIAL, declaration, filled, words_of

Given = ParamSpec("Given")
Result = TypeVar("Result")
REFERENCE = "reference.py"
RECORDED = Path(__file__).with_name("recorded.msgpack")
"""What tests compare with, by what it was asked for: recorded when an archive was packed."""
_RECORDINGS: list[dict[str, Any]] = []


def is_archive() -> bool:
    """Whether this is the tpucc of an archive for students: it has recorded results in the place of the grader's own answers."""
    return RECORDED.is_file()


@contextmanager
def recording() -> Iterator[dict[str, Any]]:
    """All results that are made in the body, by what they were asked for."""
    made: dict[str, Any] = {}
    _RECORDINGS.append(made)
    try:
        yield made
    finally:
        _RECORDINGS.remove(made)


def recorded_file(made: Mapping[str, Any]) -> bytes:
    """A recording as the file of an archive."""
    return msgspec.msgpack.encode({key: packed(made[key]) for key in sorted(made)})


@cache
def _known() -> Mapping[str, Any]:
    found: Mapping[str, Any] = msgspec.msgpack.decode(RECORDED.read_bytes()) if is_archive() else {}
    return found


def recorded(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, whose results an archive has recorded. There it is called only with arguments that no result was recorded for.

    Arguments are known by their whole text (`call_text.shown`). Results are values that a submission's answer can have.
    """

    @wraps(function)
    def asked(*given: Given.args, **named: Given.kwargs) -> Result:
        if not _RECORDINGS and not is_archive():
            return function(*given, **named)
        key = f"{function.__name__} {sha256(shown((given, named), WHOLE).encode()).hexdigest()}"
        if key in _known():
            found: Result = unpacked(_known()[key])
            return found
        result = function(*given, **named)
        for recording in _RECORDINGS:
            recording[key] = result
        return result

    return asked


@dataclass(frozen=True, slots=True)
class Solution:
    """The `reference.py` of the lab in the folder `lab`, with the words of a term's rules. No archive for students has it."""

    lab: str
    rules: Any

    @classmethod
    def of(cls, folder: Path, rules: object) -> Solution:
        return cls(folder.name, rules)

    def answer(self, function: str, *arguments: Any) -> Plain:
        """What a function of the solution returns. An archive for students has recorded it for the public tests, and has None else."""
        return _answer(self, function, *arguments)

    def expected(self, function: str, *arguments: Any) -> Plain:
        """The same, where no test can do without it. Raises `NotImplementedError` in an archive that has not recorded it."""
        found = self.answer(function, *arguments)
        return self.call(function, *arguments) if found is None else found

    def call(self, function: str, *arguments: Any) -> Plain:
        """What a function of the solution returns, which isn't recorded. In an archive raises `NotImplementedError`."""
        return _submission(self).call(function, *arguments)


@recorded
def _answer(solution: Solution, function: str, *arguments: Any) -> Plain:
    return None if is_archive() else solution.call(function, *arguments)


@cache
def _submission(solution: Solution) -> Here:
    folder = Path(__file__).parent / solution.lab
    if is_archive():
        said = declaration(folder)
        raise NotImplementedError(f"lab {said['number']}: write {', '.join(said['functions'])}")
    return executed(filled((folder / MATERIAL / REFERENCE).read_text("utf-8"), words_of(solution.rules)), folder / MATERIAL / REFERENCE)
