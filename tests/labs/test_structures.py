"""Structures that some terms have: the reference earns all points with one and without, and a solution for the other loses some."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.lab_marks import REFERENCE, SKELETON, marks
from tests.support.lab_results import results, score
from tests.support.lab_solutions import files_of, reference
from tpucc.labs import find, labs
from tpucc.labs.lab import Lab, Term
from tpucc.labs.submissions import Variants

THREE, FOUR = '"HOST", "MATRIX", "ACTIVATION"', '"HOST", "MATRIX", "ACTIVATION", "MATRIX_2"'
WORDS = {"tiling": ("{{halves}}", "False", "True"), "waits": ("{{engines}}", THREE, FOUR)}
"""The word of a lab's reference that makes it one for the structure; what it is without, and with it."""
LOST = {"tiling": (10, 35), "waits": (20, 30)}
"""The points that a solution without the structure loses, at least and at most: a part, and not all."""


def terms(lab: Lab) -> Sequence[Term]:
    """A term without the structure, and one with it."""
    named = [Term(str(number)) for number in range(20)]
    return [next(term for term in named if bool(lab.structure(term)) is there) for there in (False, True)]


def test_labs_with_structures_are_those_that_are_tried() -> None:
    assert {lab.name for lab in labs() if any(lab.structure(Term(str(number))) for number in range(20))} == set(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_all_students_of_a_term_have_its_structure(name: str) -> None:
    """Variants of its own have other numbers alone: one algorithm isn't as hard as another."""
    for term in terms(find(name)):
        variants = Variants(find(name), term, b"a secret of sixteen bytes and more")
        assert {find(name).structure(variants.of_student(str(student))) for student in range(9)} == {find(name).structure(term)}


@pytest.mark.parametrize("name", WORDS)
def test_handouts_say_which_structure_a_term_has(name: str) -> None:
    plain, structured = (find(name).material("handout.md", term) for term in terms(find(name)))
    said = {"tiling": "The accumulators are two halves", "waits": "a second matrix unit"}[name]
    assert said not in plain
    assert said in structured


def test_waits_of_the_skeleton_are_of_the_listings_own_machine() -> None:
    """In a term with two matrix units most listings are for a machine with one."""
    lab = find("waits")
    term = terms(lab)[1]
    found = results(lab, lab.files(term), term)
    assert not [each.outcome.message for each in found if "as an engine" in each.outcome.message]


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_a_solution_for_the_other_structure_loses_a_part(name: str) -> None:
    lab, (word, without, within) = find(name), WORDS[name]
    files = files_of(lab, reference(lab))
    plain, structured = terms(lab)

    def points(value: str, term: Term) -> float:
        return score(results(lab, {file: text.replace(word, value) for file, text in files.items()}, term))

    assert points(within, structured) == points(without, plain) == 100
    assert LOST[name][0] <= 100 - points(without, structured) <= LOST[name][1]
    assert name != "tiling" or points(within, plain) <= 90


@pytest.mark.soak
@pytest.mark.parametrize("name", WORDS)
def test_marks_grow_with_work_in_a_structure(name: str) -> None:
    found = {each.solution: each for each in marks(find(name), terms(find(name))[1])}
    least, most = found.pop(SKELETON), found.pop(REFERENCE)
    assert (least.whole <= find(name).floor, most.whole) == (True, 100)
    assert all(least.whole <= each.whole < most.whole and least.public <= each.public for each in found.values())
