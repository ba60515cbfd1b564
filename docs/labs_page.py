"""The page of the labs: what each asks for, and what tries to fool its tests."""

from __future__ import annotations

from pathlib import Path

from paper_page import table

from tpucc.labs import labs
from tpucc.labs.lab import Lab

SUBMISSIONS = Path(__file__).resolve().parents[1] / "tests" / "labs" / "submissions"
INTRO = """\
# The labs

Each is a folder below `tpucc/labs` ([writing a lab](../labs.md#writing-a-lab)); `tpucc lab start N` begins one.
"""
TESTED = """\
## What is tried against them

Wrong solutions each fail a test that they name. Exploits are made to fool a lab's tests, or call what tpucc itself has. None earns more
than the floor, of 100 points.
"""
TRIED = {"wrong": "wrong solutions", "exploits": "made to fool it", "exploits/jailed": "call tpucc's own"}
"""The columns of the second table, by the folders whose files they count."""


def labs_page() -> str:
    """The tables of all labs, in the order of their numbers."""
    named = {f"{lab.number} {lab.name}": lab for lab in labs()}
    asked = [(name, lab.writes, lab.looks_for, lab.points_by) for name, lab in named.items()]
    tried = [(name, *(_count(lab, folder) for folder in TRIED), f"{lab.floor:g}") for name, lab in named.items()]
    first = table(("lab", "you write", "the tests look for", "points by"), asked)
    second = table(("lab", *TRIED.values(), "floor"), tried)
    return "\n".join((INTRO, *first, TESTED, *second)).rstrip("\n") + "\n"


def _count(lab: Lab, folder: str) -> str:
    """How many files a folder of the lab's submissions has."""
    return str(sum(path.is_file() for path in (SUBMISSIONS / lab.name / folder).glob("*")))
