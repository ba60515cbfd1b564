"""The page of what solutions of labs earn: docs/instructors/marks.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.lab_marks import Marks, marks  # noqa: E402
from tests.support.lab_results import SEED  # noqa: E402
from tpucc.labs import labs  # noqa: E402
from tpucc.labs.lab import Lab, Term  # noqa: E402

TERM = Term("spring")
HEAD = f"""# What solutions earn

What tpucc's own solutions of the labs earn: the skeleton as it is handed out, the reference with one function of the skeleton's, solutions
that are wrong in one way, and the reference. *Public* are the points of the tests that students run, *all* those of hidden tests
too. All are of the {TERM}, and of the hidden tests that the seed {SEED} draws; other terms and seeds move some by a few points. Tests ask
that nobody earns less than the skeleton, and nobody who did a part less than who did none.

No student's solution is here: nobody has measured a class. The wrong solutions are in tests/labs/submissions
([how to hand one out](README.md#common-mistakes-and-how-they-look)). Who has all public points and not all others has
met a case that only hidden tests have.
"""


def marks_page() -> str:
    return "\n".join([HEAD, *(line for lab in labs() for line in _lab(lab))])


def _lab(lab: Lab) -> Iterator[str]:
    found = sorted(marks(lab, TERM), key=lambda each: each.whole)
    yield f"## Lab {lab.number}: {lab.title}\n"
    yield "| solution | public | all | what is wrong |"
    yield "|---|---|---|---|"
    yield from (f"| {each.solution} | {each.public:g} | {each.whole:g} | {_fault(each)} |" for each in found)
    yield ""


def _fault(each: Marks) -> str:
    """What a wrong solution gets wrong, without the name of the test that it fails."""
    return each.fault.partition("`: ")[2].replace("|", "\\|")
