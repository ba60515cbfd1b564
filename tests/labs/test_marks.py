"""Marks grow with work: nobody who tried earns less than the skeleton, nor who did a part less than who did none."""

from __future__ import annotations

import pytest

from tests.support.cases import one_of
from tests.support.lab_marks import REFERENCE, SKELETON, Marks, marks
from tests.support.lab_results import results, score
from tpucc.labs import find, labs
from tpucc.labs.lab import Lab, Term

MOST_OF_A_SKELETON = 15


@pytest.mark.long
@pytest.mark.parametrize("lab", one_of(5, labs()), ids=lambda lab: lab.name)
def test_marks_grow_with_work(lab: Lab) -> None:
    """Of wrong solutions, and of the reference's with one function of the skeleton's; the public tests' and all."""
    found = {each.solution: each for each in marks(lab, Term("spring"))}
    least, most = found.pop(SKELETON), found.pop(REFERENCE)
    assert least.whole <= MOST_OF_A_SKELETON
    assert most.whole == 100
    assert [each for each in found.values() if not _between(least, each, most)] == []


def _between(least: Marks, each: Marks, most: Marks) -> bool:
    return least.public <= each.public <= most.public and least.whole <= each.whole < most.whole


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("allocation", "return starts\n", "return starts.tolist()\n"),
        ("allocation", "return starts\n", "return starts + ALIGNMENT\n"),
        ("waits", "return waits\n", "return waits[::-1]\n"),
        ("waits", "return waits\n", "return waits[1:]\n"),
        ("order", "return list(", "return tuple("),
    ],
)
def test_a_trifle_more_than_the_skeleton_earns_no_more(name: str, old: str, new: str) -> None:
    """Which a test would give who asks for what is valid alone."""
    lab, term = find(name), Term("spring")
    text = lab.files(term)[lab.file]
    assert old in text
    assert score(results(lab, text.replace(old, new), term)) <= lab.floor
