"""Which lab and which term a command of `tpucc lab` is asked for: by its options, or by the folder."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote

import click

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.labs import find
from tpucc.labs.lab import Lab, Term
from tpucc.labs.start import place
from tpucc.labs.submissions import FILE as LAB_FILE

LONGEST_TERM = 64
"""Characters of a term's name."""


def term_name(given: str) -> str:
    """A term's name without its case, which may be any word that reads the same to everybody. Raises `UsageError` E0550."""
    if given and (given != given.strip() or len(given) > LONGEST_TERM or not re.fullmatch(r"[\w .+-]+", given, re.ASCII)):
        help = (f"letters, digits, spaces and . _ + -, at most {LONGEST_TERM} of them, as in 2027-spring",)
        raise UsageError(Diagnostic("E0550", f"{given!r} can't be a term's name", help=help))
    return given.casefold()


term_option = click.option(
    "--term",
    metavar="NAME",
    callback=lambda context, option, given: given and term_name(given),
    help="The term: its labs have their own numbers and rules. Each name is one.",
)

lab_option = click.option("--lab", "which", metavar="N", help="The lab, where the folder doesn't say it.")

only_option = click.option(
    "--only", multiple=True, metavar="TEST", help="Run one test, by its name or the words that it begins with; may be given again."
)


def heading(lab: Lab, term: Term) -> str:
    return f"lab {lab.number} ({lab.name}), {term}"


def lab_and_term(path: Path, which: str | None, term: str | None) -> tuple[Lab, Term]:
    """The lab and the term of the command line, or else of the folder. Raises `UsageError` E0551 for a folder that isn't there."""
    require_there(path)
    if which is not None:
        return find(which), Term(term or "")
    found = place(path)
    return found.lab, found.term if term is None else Term(term)


def require_there(path: Path) -> None:
    """Raises `UsageError` E0551 for a folder or a file that isn't there."""
    if not path.exists():
        raise UsageError(Diagnostic("E0551", f"there is no folder {printable(str(path))}", help=("tpucc lab start N FOLDER begins a lab",)))


def lab_and_term_to_grade(path: Path, which: str | None, term: str | None) -> tuple[Lab, Term]:
    """The lab and the term that a submission is graded for. The term is the command line's: the submission's file is the student's. Raises
    `UsageError` E0551 where neither lab nor term is given, and the file says a term."""
    require_there(path)
    if which is not None:
        return find(which), Term(term or "")
    found = place(path)
    if term is None and found.term.name:
        named = f"--lab {found.lab.number} --term {quote(printable(found.term.name))}"
        message = f"grade takes the term from --term, and {LAB_FILE} says {found.term}"
        raise UsageError(Diagnostic("E0551", message, help=(f"{named} grades as the file says",)))
    click.echo(f"--lab isn't given: lab {found.lab.number} is what {LAB_FILE} says")
    return found.lab, Term(term or "")
