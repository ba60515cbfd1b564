"""What the tests of a lab find in a submission that is executed in this process: for code of our own only."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from tpucc.guest.serving import function_of
from tpucc.guest.values import Plain, packed, require_plain, unpacked
from tpucc.labs.grading import Result, run
from tpucc.labs.lab import Lab, Term, Test
from tpucc.plugins.failures import Failed

SEED = 20


class Here:
    """A submission in this process: for code of our own only. It has files, of which the Python ones are executed, or functions."""

    def __init__(self, given: Mapping[str, str] | Mapping[str, Callable[..., object]] | str) -> None:
        files = {"submission.py": given} if isinstance(given, str) else given
        self._files = {name: text for name, text in files.items() if isinstance(text, str)}
        self._module: dict[str, Any] = {"__name__": "submission", "__file__": "submission.py"}
        self._module |= {name: function for name, function in files.items() if callable(function)}
        for name, text in self._files.items():
            if name.endswith(".py"):
                exec(compile(text, "submission.py", "exec", dont_inherit=True), self._module)

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        try:
            copies = pickle.loads(pickle.dumps(arguments))
            answer: Any = function_of(SimpleNamespace(**self._module), function)(*copies)
            return require_plain(unpacked(packed(answer)))
        except Exception as error:
            raise Failed(type(error).__name__, str(error)) from None

    def replace(self, function: str, other: Here) -> None:
        """Takes a function of another submission in the place of its own."""
        self._module[function] = other._module[function]

    def defines(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, value in self._module.items() if callable(value) and not name.startswith("_")))

    def text(self, name: str) -> str:
        if name not in self._files:
            raise Failed("file", f"{name} isn't here")
        return self._files[name]


@cache
def all_tests(lab: Lab, term: Term) -> tuple[Test, ...]:
    """All tests of a lab, made once: they change nothing that they share, and hand out copies."""
    return (*lab.public(term), *lab.hidden(term, SEED))


def results(lab: Lab, given: Mapping[str, str] | str, term: Term, only: str = "") -> list[Result]:
    """What the tests find in files, or in the main one alone; or what the test of this name finds."""
    submission = submitted(lab, {lab.file: given} if isinstance(given, str) else given, term)
    found = [run(test, submission, SEED) for test in all_tests(lab, term) if not only or test.name == only]
    assert [result.fault for result in found if result.fault] == []
    return found


def submitted(lab: Lab, files: Mapping[str, str], term: Term) -> Here:
    """A submission of these files, with the term's words."""
    return Here({name: lab.filled(text, term) for name, text in files.items()})


def score(found: list[Result]) -> float:
    return round(sum(result.score for result in found), 2)
