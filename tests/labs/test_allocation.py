"""Lab 5: what its tests take for right and for wrong, to the row and to the instruction."""

from __future__ import annotations

import numpy as np
import pytest

from tpucc.labs import find
from tpucc.labs.allocation import Rules, bound, rules, wrong
from tpucc.labs.allocation.drawing import lives_svg
from tpucc.labs.lab import Term
from tpucc.schedule.allocate import Lives


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
