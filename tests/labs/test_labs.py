"""Every lab: its reference gets all points, its skeleton the floor, each wrong solution fails the test that it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tpucc.labs import labs
from tpucc.labs.child import _read
from tpucc.labs.grading import Result, run
from tpucc.labs.guest import _plain
from tpucc.labs.lab import Failed, Lab, Plain, Term

SOLUTIONS = Path(__file__).parent / "solutions"
TERMS = [Term(), Term("spring"), Term("2027 autumn")]
SEED = 20


class Here:
    """A submission in this process: for code of our own only."""

    def __init__(self, text: str) -> None:
        self._text, self._module = text, {"__name__": "submission", "__file__": "submission.py"}
        exec(compile(text, "submission.py", "exec"), self._module)

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        if function not in self._module:
            raise Failed("result", f"defines no function {function}")
        try:
            answer: Any = self._module[function](*arguments)  # type: ignore[operator]
            return _read(_plain(answer))
        except (tpucc.TooLarge, ArithmeticError, LookupError, TypeError, ValueError, NotImplementedError, AssertionError) as error:
            raise Failed(type(error).__name__, str(error)) from None
        except tpucc.Error as error:
            raise Failed(type(error).__name__, str(error)) from None

    def defines(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, value in self._module.items() if callable(value) and not name.startswith("_")))

    def text(self, name: str) -> str:
        raise Failed("result", f"{name} isn't here")


def results(lab: Lab, text: str, term: Term, only: str = "") -> list[Result]:
    """What the tests find, or the one that is named `only`."""
    submission = Here(lab.filled(text, term))
    found = [run(test, submission) for test in (*lab.public(term), *lab.hidden(term, SEED)) if only in ("", test.name)]
    assert [result.fault for result in found if result.fault] == []
    return found


def score(found: list[Result]) -> float:
    return round(sum(result.score for result in found), 2)


PAIRS = [pytest.param(lab, term, id=f"{lab.name}-{term.name or 'as written'}") for lab in labs() for term in TERMS]


def mistakes(lab: Lab) -> list[Path]:
    """The wrong solutions of a lab."""
    return sorted((SOLUTIONS / lab.name / "wrong").glob("*.py"))


MISTAKES = [pytest.param(lab, path, id=f"{lab.name}-{path.stem}") for lab in labs() for path in mistakes(lab)]


@pytest.mark.parametrize(("lab", "term"), PAIRS)
def test_the_reference_gets_all_points(lab: Lab, term: Term) -> None:
    tests = (*lab.public(term), *lab.hidden(term, SEED))
    assert sum(test.points for test in tests) == 100
    assert len({test.name for test in tests}) == len(tests)
    found = results(lab, (SOLUTIONS / lab.name / "reference.py").read_text("utf-8"), term)
    assert [(result.test.name, result.outcome.message) for result in found if not result.outcome.passed] == []


@pytest.mark.parametrize(("lab", "term"), PAIRS)
def test_the_skeleton_gets_its_floor(lab: Lab, term: Term) -> None:
    assert score(results(lab, lab.material("skeleton.py", term), term)) <= lab.floor


@pytest.mark.parametrize(("lab", "path"), MISTAKES)
def test_a_wrong_solution_fails_the_test_that_it_names(lab: Lab, path: Path) -> None:
    named = re.search(r"Fails `(?P<test>[^`]+)`", path.read_text("utf-8"))
    assert named is not None
    for term in TERMS:
        (found,) = results(lab, path.read_text("utf-8"), term, named["test"])
        assert not found.outcome.passed


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_there_are_five_wrong_solutions(lab: Lab) -> None:
    assert len(mistakes(lab)) >= 5


@pytest.mark.parametrize(("lab", "term"), PAIRS)
def test_texts_are_complete(lab: Lab, term: Term) -> None:
    for name in ("handout.md", "skeleton.py"):
        text = lab.material(name, term)
        assert "{{" not in text
        assert text.isprintable() or "\n" in text
    assert lab.file in lab.material("handout.md", term)
    assert all(f"def {function}(" in lab.material("skeleton.py", term) for function in lab.functions)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_terms_differ(lab: Lab) -> None:
    """A solution of one term is no solution of another."""
    seen = {tuple(sorted(lab.words(Term(str(number))).items())) for number in range(12)}
    assert len(seen) > 2


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_hidden_tests_come_from_the_seed(lab: Lab) -> None:
    names = [[test.name for test in lab.hidden(Term(), seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1]
    assert all(test.hidden for test in lab.hidden(Term(), 1))
    assert not any(test.hidden for test in lab.public(Term()))
