"""Lab 5: what its tests take for right and for wrong, to the row and to the instruction."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc.schedule.allocate as own
from tests.labs.test_labs import ROOT
from tests.support.cases import one_of
from tests.support.lab_results import Here, submitted
from tests.support.lab_solutions import files_of, main_file, reference
from tpucc.guest.values import Plain
from tpucc.labs import find
from tpucc.labs.allocation import CALLS, Rules, bound, just_fits, rules, three, wrong
from tpucc.labs.allocation.drawing import lives_svg
from tpucc.labs.grading import run
from tpucc.labs.judging import outcome_of
from tpucc.labs.lab import Term
from tpucc.labs.strip import stripped
from tpucc.schedule.allocate import Lives


class Counted(Here):
    """A submission that notes the buffers of each call."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.buffers = list[int]()

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        self.buffers.append(len(arguments[0].rows))
        return super().call(function, *arguments, seconds=seconds)


@pytest.mark.long
def test_the_handout_says_how_many_calls_there_are() -> None:
    lab, submission = find("allocation"), Counted(main_file(find("allocation")))
    found = {}
    for said, tests in (("checking", lab.public(Term())), ("grading", lab.hidden(Term(), 20))):
        for test in tests:
            run(test, submission)
        found[said] = len(submission.buffers)
    assert {said: count / CALLS[said] for said, count in found.items()} == pytest.approx({"checking": 1, "grading": 1}, rel=0.1)
    assert max(submission.buffers) == pytest.approx(CALLS["buffers"], rel=0.2)


@pytest.mark.parametrize(
    ("starts", "last", "align", "words"),
    [
        ((0, 4), 5, 1, ""),
        ((0, 3), 5, 1, "share rows while both are alive"),
        ((3, 0), 5, 1, ""),
        ((2, 0), 5, 1, "share rows while both are alive"),
        ((0, 3), 4, 1, ""),
        ((0, 8), 5, 1, "is not inside rows 0 to 9"),
        ((-1, 5), 5, 1, "is not inside"),
        ((0, 7), 5, 1, ""),
        ((0, 5), 5, 3, "begins at row 5, which 3 does not divide"),
        ((0, 6), 5, 3, ""),
    ],
)
def test_one_row_and_one_instruction_decide(starts: tuple[int, int], last: int, align: int, words: str) -> None:
    """Buffer 0 has four rows until `last`, buffer 1 three rows from instruction 5 on, of ten rows in all."""
    lives = Lives(np.array([0, 5]), np.array([last, 9]), np.array([4, 3]))
    found = wrong(lives, np.array(starts), 10, Rules(align))
    assert (words in found) if words else found == ""


@pytest.mark.parametrize(
    ("starts", "host", "right"),
    [
        ((3, 7), Rules(1, 3, 0), True),
        ((2, 7), Rules(1, 3, 0), False),
        ((0, 4), Rules(1, 0, 3), True),
        ((0, 4), Rules(1, 0, 4), False),
        ((4, 0), Rules(1, 0, 2), True),
        ((4, 0), Rules(1, 0, 3), False),
    ],
)
def test_no_buffer_lies_in_the_hosts_rows(starts: tuple[int, int], host: Rules, right: bool) -> None:
    """The same buffers in ten rows, of which the host has the first or the last."""
    lives = Lives(np.array([0, 5]), np.array([5, 9]), np.array([4, 3]))
    found = wrong(lives, np.array(starts), 10, host)
    assert found == "" if right else f"is not inside rows {host.below} to {9 - host.above}" in found


@pytest.mark.parametrize(("second", "host", "peak", "shared"), [(14, 10, 8, 0), (10, 10, 4, 1), (4, 0, 8, 0)])
def test_a_picture_counts_the_rows_that_the_test_counts(second: int, host: int, peak: int, shared: int) -> None:
    """Rounded up to the alignment, without the host's; rows that two buffers share are framed."""
    lives = Lives(np.array([0, 5]), np.array([5, 9]), np.array([4, 4]))
    drawn = lives_svg(lives, np.array([host, second]), "words", host)
    assert f">peak {peak}<" in drawn
    assert ">alive 8<" in drawn
    assert drawn.count("share rows") == shared
    assert drawn.count(">host<") == bool(host)
    assert (f"peak and alive leave out the lowest {host} rows" in drawn) is bool(host)


def test_terms_give_the_host_rows_below_or_above() -> None:
    drawn = [rules(Term(str(number))) for number in range(20)]
    assert {bool(each.below) for each in drawn} == {True, False}
    assert all((each.below + each.above) % each.alignment == 1 for each in drawn)
    for number, each in enumerate(drawn):
        said = find("allocation").material("handout.md", Term(str(number)))
        assert f"The {'first' if each.below else 'last'} {each.below + each.above} of the rows belong to the host" in said


@pytest.mark.parametrize(("align", "rows"), [(1, 7), (4, 8), (5, 10)])
def test_the_bound_counts_whole_steps_of_the_alignment(align: int, rows: int) -> None:
    assert bound(Lives(np.array([0, 5]), np.array([5, 9]), np.array([4, 3])), align) == rows


LAB = find("allocation")


@pytest.mark.parametrize("term", ["", "spring", "fall", "2027-spring"])
def test_where_the_last_instruction_is_taken_for_free_little_is_earned(term: str) -> None:
    """The public tests find it as the hidden ones do."""
    submission = Here(main_file(LAB, "last_is_free", Term(term)))
    tests = (*LAB.public(Term(term)), *LAB.hidden(Term(term), 3))
    assert [test.name for test in tests if run(test, submission).score] == ["hidden: a buffer that is just large enough"]


def test_a_program_has_rows_for_every_allocator_and_none_may_be_left_out() -> None:
    given = Here("import tpucc\ndef allocate(lives, rows):\n    raise tpucc.TooLarge('no')")
    for term in map(Term, ("", "spring", "b")):
        for test in (*LAB.public(term), *LAB.hidden(term, 1)):
            found = run(test, given)
            assert not found.score
            assert re.match(
                r"(0 of 8 are right: )?TooLarge is raised for [\d,]+ rows, (of )?which (are|[\d,]+ are) enough: \d", found.outcome.message
            )


@pytest.mark.parametrize("term", ["", "spring", "fall"])
def test_a_programs_rows_are_counted_as_the_other_tests_count_them(term: str) -> None:
    """Rounded up to the alignment, without the host's: the reference has no row more than are needed."""
    found = run(LAB.public(Term(term))[2], submitted(LAB, files_of(LAB, reference(LAB)), Term(term)))
    assert re.match(r"equal; 12 buffers in (\d+) rows; \1 are needed at one time; ", found.outcome.message)


def test_a_message_names_a_buffer_as_the_drawing_does() -> None:
    lives = Lives(*(np.array([value] * 17) for value in (0, 9, 4)))
    starts = np.append(np.arange(15) * 4, [58, 60])
    assert wrong(lives, starts, 99, Rules()).startswith("buffer 14 (e), instructions 0 to 9, on rows 56 to 59 and buffer 15 (f), ")
    assert wrong(lives, np.arange(17) * 4 + 2, 99, Rules(3)).startswith("buffer 0 begins")


@pytest.mark.parametrize(
    ("host", "few", "enough"),
    [
        (
            Rules(),
            "13 rows are too few: 14 are alive at one time, and there are 13 rows",
            "14 rows, which are enough: 14",
        ),
        (
            Rules(2, 5, 0),
            "33 rows are too few: 28 are alive at one time, and the rules leave 27 rows from row 6 on",
            "34 rows, which are enough: 28, and 6 before row 6, the first at which one may begin",
        ),
        (
            Rules(2, 0, 5),
            "32 rows are too few: 28 are alive at one time, and the rules leave 27 rows",
            "33 rows, which are enough: 28, and the last 5, which are the host's",
        ),
    ],
)
def test_too_large_says_how_many_rows_there_are(host: Rules, few: str, enough: str) -> None:
    answers = outcome_of(partial(just_fits, host, three(host.alignment), Here({"allocate": lambda lives, _: [0] * len(lives.rows)})))
    assert (answers.message, answers.expected) == (few, "TooLarge is raised")
    refusal = Here("import tpucc\ndef allocate(lives, rows):\n    raise tpucc.TooLarge")
    refuses = outcome_of(partial(just_fits, host, three(host.alignment), refusal))
    assert refuses.message.replace(" for the buffers that are alive at one time", "") == f"TooLarge is raised for {enough}"


def test_nothing_of_tpuccs_own_allocation_is_left_in_a_students_copy() -> None:
    """Every function and method is a stub, but for what all allocators need: lives, their peak, and errors."""
    space: dict[str, object] = {"__name__": own.__name__}
    exec(compile(stripped(Path(own.__file__).read_text("utf-8"), {5}), own.__file__, "exec"), space)
    functions = [value for value in space.values() if inspect.isfunction(value) and value.__module__ == own.__name__]
    methods = [value for value in vars(space["Gaps"]).values() if inspect.isfunction(value)]
    for function in [one for one in (*functions, *methods) if one.__name__ != "largest_live_sum"]:
        with pytest.raises(NotImplementedError, match="lab 5: "):
            function(*(None for _ in inspect.signature(function).parameters))


@pytest.mark.parametrize("term", ["", "spring", "b"])
def test_the_handout_says_the_numbers_of_its_rules(term: str) -> None:
    said, found = LAB.material("handout.md", Term(term)), rules(Term(term))
    for name, number in {"ALIGNMENT": found.alignment, "BELOW": found.below, "ABOVE": found.above}.items():
        assert f"| `{name}` | {number} |" in said
    assert f"({Term(term)})" in said


def on_the_page() -> list[str]:
    """The allocators that the page on a lab from start to grades shows, with words for its term's numbers."""
    page = (ROOT / "docs/coursework.md").read_text("utf-8")
    shown = [text for text in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) if "\nALIGNMENT = " in text]
    shown = [re.sub(r"^ALIGNMENT = \d+", "ALIGNMENT = {{alignment}}", text, flags=re.MULTILINE) for text in shown]
    return [re.sub(r"^BELOW, ABOVE = \d+, \d+", "BELOW, ABOVE = {{below}}, {{above}}", text, flags=re.MULTILINE) for text in shown]


@pytest.mark.parametrize("term", one_of(3, ["", "spring", "fall"]))
def test_the_page_that_shows_the_lab_leaves_the_rest_to_the_reader(term: str) -> None:
    """Its code is right in every term, and earns at most 70 points."""
    shown = on_the_page()
    assert [text.count("{{") for text in shown] == [3, 3]
    mended = submitted(LAB, {LAB.file: shown[1]}, Term(term))
    found = [run(test, mended) for test in (*LAB.public(Term(term)), *LAB.hidden(Term(term), 1))]
    assert [result.test.name for result in found if not result.score and "memory" not in result.test.name] == []
    assert 35 <= sum(result.score for result in found) <= 70
    first = submitted(LAB, {LAB.file: shown[0]}, Term(term))
    assert sum(run(test, first).score for test in (*LAB.public(Term(term)), *LAB.hidden(Term(term), 1))) <= 10
