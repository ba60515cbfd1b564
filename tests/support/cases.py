"""Many small cases as one test: a test of its own takes pytest 2 ms, which is more than most cases compute."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from itertools import count, islice
from pathlib import Path
from reprlib import Repr
from typing import Any

import pytest
from _pytest.mark import ParameterSet

SHOWN = 5
"""Cases that fail of which the message has the whole traceback."""
NUMBER = "case "
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 60
LONG = pytest.mark.long
SOAK = pytest.mark.soak
LEFT_OUT = (LONG.name, SOAK.name)
"""Marks of what `make test` doesn't run."""


def each(
    cases: Mapping[str, Sequence[Any]] | Iterable[Any], usual: int | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes of a function a test that calls it with the arguments of every case, and fails with the titles of those that fail.

    `cases` are the arguments by title, or what `parametrize` takes: tuples of arguments, or the arguments of a function that has one. What
    else the function asks for are fixtures. All cases share them, but each has a folder `tmp_path` and a `monkeypatch` of its own, and
    `capsys` has what it prints alone. Without `--soak`, of random cases only the first `usual`. Cases that take long are parametrised, so
    that workers share them.
    """

    def grouped(check: Callable[..., None]) -> Callable[..., None]:
        named = _named(cases, check)
        names = list(signature(check).parameters)[len(next(iter(named.values()))) :]

        def test(pytestconfig: pytest.Config, **fixtures: Any) -> None:
            failed: dict[str, str] = {}
            for title, arguments in islice(named.items(), None if pytestconfig.getoption("soak") else usual):
                try:
                    with _own(fixtures) as own:
                        check(*arguments, **own)
                except (Exception, pytest.fail.Exception) as error:
                    failed[_told(title, arguments)] = "".join(traceback.format_exception(error))
            whole = "\n".join(f"{title}\n{text}" for title, text in list(failed.items())[:SHOWN])
            assert not failed, f"{len(failed)} of {len(named)} cases fail: {', '.join(failed)}\n{whole}"

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        asked = [Parameter(name, Parameter.KEYWORD_ONLY) for name in ("pytestconfig", *names)]
        vars(test).update(__signature__=Signature(asked), pytestmark=list(vars(check).get("pytestmark", ())))
        return test

    return grouped


def _named(cases: Mapping[str, Sequence[Any]] | Iterable[Any], check: Callable[..., None]) -> Mapping[str, Sequence[Any]]:
    """The arguments of each case by its title; cases without one are told apart by their number."""
    if isinstance(cases, Mapping):
        return cases
    listed = list(cases)
    alone = len(signature(check).parameters) == 1 or not isinstance(listed[0], tuple)
    return {f"{NUMBER}{number}": (case,) if alone else case for number, case in enumerate(listed)}


def _told(title: str, arguments: Sequence[Any]) -> str:
    """The title of a case that failed; only now, as the text of a whole program takes long."""
    return f"{title}: {SHORT.repr(tuple(arguments))}" if title.startswith(NUMBER) else title


@contextmanager
def _own(fixtures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The fixtures of one case."""
    own = dict(fixtures)
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        if "tmp_path" in own:
            own["tmp_path"] = Path(tempfile.mkdtemp(dir=own["tmp_path"]))
        if "capsys" in own:
            own["capsys"].readouterr()
        yield own


def one_of(step: int, cases: Iterable[Any], others: pytest.MarkDecorator = SOAK) -> list[Any]:
    """The parameters of a test: the first of every `step` cases in each run, the others in `make soak`; those that have one of our marks
    keep it, and are not counted. With `others=LONG`, the others are in `make check` too."""
    usual, found = count(), []
    for case in cases:
        given = case if isinstance(case, ParameterSet) else pytest.param(*(case if isinstance(case, tuple) else (case,)))
        stays = any(mark.name in LEFT_OUT for mark in given.marks) or not next(usual) % step
        found.append(given if stays else pytest.param(*given.values, marks=(*given.marks, others), id=given.id))
    return found


def titled(cases: Mapping[str, Any]) -> dict[str, tuple[Any]]:
    """Cases of one argument."""
    return {title: (case,) for title, case in cases.items()}
