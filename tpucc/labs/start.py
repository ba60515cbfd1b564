"""A lab's folder, as a student begins with it."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

from tpucc.diagnostics import Diagnostic, Error, UsageError, printable
from tpucc.files import read_file
from tpucc.labs import find
from tpucc.labs.child import BUDGET, CALL
from tpucc.labs.lab import AS_WRITTEN, Lab, Term, filled
from tpucc.labs.submissions import FILE, MOST_OF_FILE, require_own
from tpucc.output_files import write_files
from tpucc.plugins.failures import Failed

TEXTS = Path(__file__).parent / "texts"
POINTS = "\nEach test's points are rounded down to halves.\n"
"""The end of every handout."""


def start(lab: Lab, folder: Path, term: Term = AS_WRITTEN) -> tuple[str, ...]:
    """Writes the handout and the files to begin with into a new folder; returns their names. Raises `UsageError` where one is there
    already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(Diagnostic("E0528", f"{printable(str(folder))} is there already", help=("name another one, after N",)))
    files = starting_files(lab, term)
    write_files(folder, {name: text.encode() for name, text in files.items()})
    return tuple(files)


def starting_files(lab: Lab, term: Term) -> dict[str, str]:
    """The texts of a lab's folder, by their names."""
    return {
        "handout.md": lab.material("handout.md", term) + _language(lab) + (_limits() if lab.functions else "") + POINTS,
        **lab.files(term),
        FILE: f"lab = {lab.number}\nterm = {json.dumps(term.name)}\n",
    }


def text(name: str, /, **words: str) -> str:
    """A text that is the same for all labs: a file of the folder `texts`, with these words. Raises `KeyError` for one that is missing."""
    return filled((TEXTS / name).read_text("utf-8"), words)


def _language(lab: Lab) -> str:
    """What a handout says of other languages, where the lab takes a program."""
    return text("language.md", file=lab.file, program=lab.program) if lab.program else ""


def _limits() -> str:
    """The limits of calls, for the handouts of labs whose functions are called."""
    return text("limits.md", call=f"{CALL:g}", budget=f"{BUDGET:g}")


def differing(lab: Lab, terms: tuple[Term, Term]) -> tuple[str, ...]:
    """The files that a student begins with whose texts differ between two terms by more than the terms' names."""
    one, other = ({name: text.replace(str(term), "") for name, text in starting_files(lab, term).items() if name != FILE} for term in terms)
    return tuple(name for name in one if one[name] != other[name])


def place(path: Path) -> tuple[Lab, Term]:
    """The lab and the term of a folder that `start` wrote, or of a file in one. Raises `UsageError` E0551 where that isn't known."""
    file = (path if path.is_dir() else path.parent) / FILE
    if not os.path.lexists(file):
        help = ("tpucc lab start N FOLDER begins a lab; or say which it is, as in --lab 5",)
        raise UsageError(Diagnostic("E0551", f"{printable(str(path))} is no lab's folder: it has no {FILE}", help=help))
    try:
        require_own(file)
        said = tomllib.loads(read_file(file, most=MOST_OF_FILE).decode())
        return find(str(said["lab"])), Term(str(said.get("term", "")).casefold())
    except Failed as failure:
        raise UsageError(Diagnostic("E0551", failure.message, help=("lab = 5",))) from None
    except KeyError:
        raise UsageError(Diagnostic("E0551", f"{FILE} says no lab", help=("lab = 5",))) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(Diagnostic("E0551", f"{FILE} can't be read: {printable(str(error))}", help=("lab = 5",))) from None


def disagreement(path: Path, lab: Lab, term: Term) -> str:
    """What the folder's file says of lab and term, where that isn't what is asked for; nothing where it agrees or isn't there."""
    try:
        found, said = place(path)
    except Error as error:
        there = os.path.lexists((path if path.is_dir() else path.parent) / FILE)
        return error.diagnostics[0].message if there else ""
    same = (found, said) == (lab, term)
    return "" if same else f"{FILE} says lab {found.number}, {said}; this is lab {lab.number}, {term}"
