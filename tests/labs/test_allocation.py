"""Lab 5: what its tests take for right and for wrong, to the row and to the instruction."""

from __future__ import annotations

import numpy as np
import pytest

from tpucc.labs.allocation import bound, wrong
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
    found = wrong(lives, np.array(starts), 10, align)
    assert (words in found) if words else found == ""


@pytest.mark.parametrize(("align", "rows"), [(1, 7), (4, 8), (5, 10)])
def test_the_bound_counts_whole_steps_of_the_alignment(align: int, rows: int) -> None:
    assert bound(Lives(np.array([0, 5]), np.array([5, 9]), np.array([4, 3])), align) == rows
