"""Every lab: its reference gets all points, its skeleton the floor, each wrong solution fails the test that it names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from _pytest.mark import ParameterSet

from tests.support.cases import LONG, one_of
from tests.support.lab_results import SEED, Here, all_tests, results, score, submitted
from tests.support.lab_solutions import exploits, files_of, jailed, mistakes, patched, reference
from tpucc import api
from tpucc.api import Executable
from tpucc.diagnostics import Diagnostic
from tpucc.labs import find, labs
from tpucc.labs.grading import run
from tpucc.labs.lab import Lab, Term
from tpucc.runtime.judge import Verdict

ROOT = Path(__file__).parents[2]
TERMS = [Term("spring")]
SOAKED = [Term(), Term("2027 autumn")]


PAIRS = [pytest.param(lab, term, id=f"{lab.name}-{term.name or 'as written'}") for lab in labs() for term in TERMS]
PAIRS += [
    pytest.param(lab, term, id=f"{lab.name}-{term.name or 'as written'}", marks=pytest.mark.soak) for lab in labs() for term in SOAKED
]
LARGE = ("allocation", "order", "passes", "race", "tiling")
"""Labs whose tests compile dozens of programs. All tests of one are in `make check`; in `make test`, each wrong solution fails its own."""


def whole(cases: Iterable[ParameterSet]) -> list[ParameterSet]:
    """Cases that run all tests of a lab, their first argument."""
    return [
        pytest.param(*case.values, id=case.id, marks=(*case.marks, LONG) if getattr(case.values[0], "name", "") in LARGE else case.marks)
        for case in cases
    ]


MISTAKES = [pytest.param(lab, path, id=f"{lab.name}-{path.stem}") for lab in labs() for path in mistakes(lab)]


@pytest.mark.parametrize(("lab", "term"), whole(PAIRS))
def test_the_reference_gets_all_points(lab: Lab, term: Term, pytestconfig: pytest.Config) -> None:
    tests = all_tests(lab, term)
    assert sum(test.points for test in tests) == 100
    assert len({test.name for test in tests}) == len(tests)
    found = results(lab, files_of(lab, reference(lab)), term)
    assert [(result.test.name, result.outcome.message) for result in found if not result.outcome.passed] == []
    assert max((len(line) for result in found for line in result.outcome.drawing.split("\n")), default=0) <= 78
    pictures = [result.outcome.picture for result in found if result.outcome.picture]
    assert all(ElementTree.fromstring(picture()) is not None for picture in pictures[:: 1 if pytestconfig.getoption("soak") else 3])


BELOW = {"allocation": 1.5, "gradients": 9, "waits": 5}
"""How many points below its floor a skeleton may be, where that isn't 0: what it earns depends on the term, or an exploit earns more."""


@pytest.mark.parametrize(("lab", "term"), whole(PAIRS))
def test_the_skeleton_gets_its_floor(lab: Lab, term: Term) -> None:
    assert lab.floor - BELOW.get(lab.name, 0) <= score(results(lab, lab.files(term), term)) <= lab.floor


LEAST = 10
"""The points that every wrong solution loses."""


@pytest.mark.parametrize(("lab", "path"), MISTAKES)
def test_a_wrong_solution_fails_the_test_that_it_names(lab: Lab, path: Path, pytestconfig: pytest.Config) -> None:
    """And in `make soak` loses at least 10 points: the tests that have most run first, until these are lost."""
    named = re.search(r"Fails `(?P<test>[^`]+)`", path.read_text("utf-8"))
    assert named is not None
    for term in TERMS:
        submission = submitted(lab, files_of(lab, path), term)
        tests = sorted(all_tests(lab, term), key=lambda test: (test.name != named["test"], -test.points))
        found = run(tests[0], submission)
        assert tests[0].name == named["test"]
        assert not found.outcome.passed
        if pytestconfig.getoption("soak"):
            lost = tests[0].points - found.score
            for test in tests[1:]:
                lost += 0 if lost >= LEAST else test.points - run(test, submission).score
            assert round(lost, 2) >= LEAST


SURPRISES: Mapping[str, Sequence[str]] = {
    "front_end": ("keeps_the_range", "makes_an_array", "slice_to_minus_zero"),
    "passes": (
        "after_the_activation",
        "any_bias",
        "bias_of_any_shape",
        "counts_uses_once",
        "folds_pinned",
        "limit_on_everything",
        "no_limit_without_operands",
        "subtraction_adds",
        "subtraction_commutes",
    ),
    "quantisation": ("remembers_ranges",),
    "tiling": ("dense_rows", "first_level_begins", "multiplies_with_zeros", "narrow_only"),
}
"""The wrong solutions of which hidden tests alone say something."""
FOUND = [
    pytest.param(lab, path, id=f"{lab.name}-{path.stem}")
    for lab in labs()
    for path in mistakes(lab)
    if path.stem not in SURPRISES.get(lab.name, ())
]


@pytest.mark.soak
@pytest.mark.parametrize(("lab", "path"), FOUND)
def test_a_public_test_finds_every_wrong_solution(lab: Lab, path: Path) -> None:
    """Of each idea that hidden tests look for, public ones have a case."""
    submission = submitted(lab, files_of(lab, path), TERMS[0])
    assert not all(run(test, submission).outcome.passed for test in all_tests(lab, TERMS[0]) if not test.hidden)


FOOLING = [(lab, path.parent if path.name in lab.files(Term()) else path) for lab in labs() for path in exploits(lab)]
EXPLOITS = [pytest.param(lab, path, id=f"{lab.name}-{path.stem}") for lab, path in dict.fromkeys(FOOLING)]


@pytest.mark.parametrize(("lab", "path"), whole(one_of(2, reversed(EXPLOITS))))
def test_an_exploit_of_a_lab_gets_its_floor(lab: Lab, path: Path) -> None:
    """Answers that would fool a careless test."""
    assert score(results(lab, files_of(lab, path), TERMS[0])) <= lab.floor


ANSWERS: Mapping[str, Callable[..., object]] = {
    "nothing": lambda *_: None,
    "true": lambda *_: True,
    "zero": lambda *_: 0,
    "not a number": lambda *_: math.nan,
    "more than 64 bits": lambda *_: 10**40,
    "no elements": lambda *_: [],
    "no keys": lambda *_: {},
    "what it was given": lambda *given: given,
    "a verdict": lambda *_: {"score": 100, "passed": True, "share": 1.0},
    "a text": lambda *_: "ok",
}
"""What every function of a submission may return, whatever it is asked."""
ANSWERED = [lab for lab in labs() if lab.functions and not lab.open]
"""The labs that ask for functions; a race asks for any of them."""


SAID = [(lab, said, (number + place) % 4) for number, lab in enumerate(ANSWERED) for place, said in enumerate(ANSWERS)]
"""Every lab with every answer. Of these, a quarter is asked in each run: two or three answers of each lab, and each answer of two labs."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("lab", "said"),
    [pytest.param(lab, said, marks=pytest.mark.soak if later else (), id=f"{lab.name}-{said}") for lab, said, later in SAID],
)
def test_one_answer_to_everything_gets_the_floor(lab: Lab, said: str) -> None:
    found = [run(test, Here(dict.fromkeys(lab.functions, ANSWERS[said]))) for test in all_tests(lab, TERMS[0])]
    assert [result.fault for result in found if result.fault] == []
    assert score(found) <= lab.floor


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_every_lab_has_ten_exploits(lab: Lab) -> None:
    """Made for it, calling tpucc's own solution, and answering everything alike."""
    assert len(exploits(lab)) >= 5
    assert len(exploits(lab)) + len(jailed(lab)) + (len(ANSWERS) if lab in ANSWERED else 0) >= 10


DIFF = """Fails `a test`: why.
--- reference.py
+++ reference.py
@@ -5,2 +5,2 @@
 same
-old
+new
@@ -9 +9,2 @@
 last
+more
"""


def test_a_patch_changes_the_nearest_place_where_its_lines_stand() -> None:
    text = "same\nold\n\n\nsame\nold\n\n\nlast\n"
    assert patched(text, DIFF) == "same\nold\n\n\nsame\nnew\n\n\nlast\nmore\n"
    assert patched(f"first\n{text}", DIFF) == f"first\n{patched(text, DIFF)}"
    with pytest.raises(AssertionError, match="aren't there any more:\nlast"):
        patched(text.replace("last", "end"), DIFF)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_there_are_five_wrong_solutions(lab: Lab) -> None:
    assert len(mistakes(lab)) >= 5


@pytest.mark.parametrize(("lab", "term"), PAIRS)
def test_texts_are_complete(lab: Lab, term: Term) -> None:
    handout, files = lab.material("handout.md", term), lab.files(term)
    for text in (handout, *files.values()):
        assert "{{" not in text
        assert text.isprintable() or "\n" in text
    assert lab.file in handout
    assert all(f"def {function}(" in files[lab.file] for function in lab.functions)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_terms_differ(lab: Lab) -> None:
    """A solution of one term is no solution of another."""
    files = [(term, {**lab.files(term), "handout": lab.material("handout.md", term)}) for term in map(Term, map(str, range(12)))]
    seen = {tuple(text.replace(str(term), "") for text in texts.values()) for term, texts in files}
    assert len(seen) > 2


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.name)
def test_hidden_tests_come_from_the_seed(lab: Lab) -> None:
    names = [[test.name for test in lab.hidden(Term(), seed)] for seed in (1, 1, 2)]
    assert names[0] == names[1]
    assert all(test.hidden for test in lab.hidden(Term(), 1))
    assert not any(test.hidden for test in lab.public(Term()))


@pytest.mark.long
@pytest.mark.parametrize("lab", one_of(2, [lab for lab in labs() if lab.functions and not lab.open]), ids=lambda lab: lab.name)
def test_a_solution_for_another_term_fails(lab: Lab) -> None:
    spring, fall = submitted(lab, files_of(lab, reference(lab)), Term("spring")), Term("fall")
    assert any(run(test, spring).score < test.points for test in (*lab.public(fall), *lab.hidden(fall, SEED)))


def test_labs_are_numbered_from_zero() -> None:
    assert [lab.number for lab in labs()] == list(range(len(labs())))
    assert [find(lab.number) for lab in labs()] == [find(lab.name) for lab in labs()] == list(labs())


@pytest.mark.long
@pytest.mark.parametrize("name", one_of(3, ["passes", "tiling", "allocation", "order", "waits", "race"]))
def test_programs_are_judged_on_inputs_that_no_submission_knows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of public tests, too: their networks are known."""
    lab, seeds = find(name), list[int]()

    def judged(_: Executable, seed: int = 0) -> Verdict:
        seeds.append(seed)
        return Verdict(False, None, 0, 0, 0, (Diagnostic("V0101", "no"),))

    monkeypatch.setattr(api, "judge", judged)
    submission = submitted(lab, files_of(lab, reference(lab)), TERMS[0])
    for test in lab.public(TERMS[0]):
        run(test, submission, 77)
    assert set(seeds) == {77}
