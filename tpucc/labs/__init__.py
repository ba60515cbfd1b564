"""Coursework: labs, each a stage of the compiler or a rule that a student writes, and a grader that needs no trust.

tpucc.lab.labs()                # what there is
tpucc.lab.puzzle(3)             # a puzzle of lab 0, which shows itself
tpucc.lab.puzzle(3).check(text) # the verdict on a solution
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.labs.lab import DECLARATION, Lab, Term, declaration

if TYPE_CHECKING:
    from tpucc.labs.puzzles.puzzle import Puzzle

FOLDER = Path(__file__).parent
NAMES: Mapping[int, str] = {declaration(path.parent)["number"]: path.parent.name for path in sorted(FOLDER.glob(f"*/{DECLARATION}"))}
"""The name of each lab, by its number: every folder here with a `lab.toml` is a lab, and a package that has its `LAB`."""


def labs() -> tuple[Lab, ...]:
    """All labs, in the order of their numbers."""
    return tuple(map(_lab, sorted(NAMES)))


def find(which: int | str) -> Lab:
    """The lab of this number or name. Raises `UsageError` E0550 when there is none."""
    word = str(which).lower().removeprefix("lab")
    number = next((n for n, name in NAMES.items() if word in (str(n), name)), None)
    if number is None:
        known = ", ".join(f"{n} {name}" for n, name in sorted(NAMES.items()))
        raise UsageError(Diagnostic("E0550", f"there is no lab {printable(str(which))}", help=(f"there are {known}",)))
    return _lab(number)


def puzzle(number: int, term: str = "") -> Puzzle:
    """A puzzle of lab 0 by its number, of a term or as written. Raises `UsageError` E0550 when there is none."""
    from tpucc.labs.puzzles import puzzle as find_puzzle

    return find_puzzle(number, Term(term.casefold()))


@cache
def _lab(number: int) -> Lab:
    found = import_module(f"tpucc.labs.{NAMES[number]}").LAB
    assert isinstance(found, Lab)
    return found
