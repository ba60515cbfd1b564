"""What the commands of `tpucc lab` share: which lab and which term they are asked for, by options or by the folder, and what is printed and
drawn of the results of one submission.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from shlex import quote

import click

from tpucc.cli.columns import filled
from tpucc.cli.messages import room_of, say
from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.labs import find
from tpucc.labs.grading import Grade, Result
from tpucc.labs.lab import Lab, Term
from tpucc.labs.results import file_name, printable_lines, printed_lines, report, write_json
from tpucc.labs.start import place
from tpucc.labs.submissions import FILE as LAB_FILE
from tpucc.labs.timelines import characters_svg
from tpucc.output_files import write_files

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


def lab_and_term(path: Path, which: str | None, term: str | None, *, graded: bool = False) -> tuple[Lab, Term]:
    """The lab and the term of the command line, or else of the folder. The term that a submission is `graded` for is the command line's:
    the submission's file is the student's. Raises `UsageError` E0551 for a folder that isn't there, and where neither lab nor term is given
    and the file says a term."""
    require_there(path)
    if which is not None:
        return find(which), Term(term or "")
    lab, said = place(path)
    if not graded:
        return lab, said if term is None else Term(term)
    if term is None and said.name:
        message = f"grade takes the term from --term, and {LAB_FILE} says {said}"
        help = f"--lab {lab.number} --term {quote(printable(said.name))} grades as the file says"
        raise UsageError(Diagnostic("E0551", message, help=(help,)))
    click.echo(f"--lab isn't given: lab {lab.number} is what {LAB_FILE} says")
    return lab, Term(term or "")


def require_there(path: Path) -> None:
    """Raises `UsageError` E0551 for a folder or a file that isn't there."""
    if not path.exists():
        raise UsageError(Diagnostic("E0551", f"there is no folder {printable(str(path))}", help=("tpucc lab start N FOLDER begins a lab",)))


INDENT = 6 * " "
RAISED = "it raised an exception"
"""The trouble of a test that an exception ended."""


def follow(sofar: Grade, json_file: Path | None, details: bool = False) -> None:
    """Prints the newest result, and writes all of them."""
    if json_file is not None:
        write_json(sofar, json_file, details)
    if sofar.results and not sofar.problem:
        click.echo(_line(sofar.results[-1], sofar))


def _line(result: Result, sofar: Grade) -> str:
    mark = "ok" if result.outcome.passed else "part" if result.score else "FAIL"
    head = f"{mark:<5}{result.score:>6g} of {result.test.points:g}  {result.test.name}"
    what, told = _told(result)
    if earlier := next((other for other in sofar.results[:-1] if told and _told(other)[1] == told), None):
        return f"{head}\n{INDENT}the same {what}as in `{earlier.test.name}`"
    room = room_of(sys.stdout)
    lines = report(result, sofar, whole=False, width=room - len(INDENT) if room else None).splitlines()
    return "\n".join((head, *(f"{INDENT}{line}" for line in lines)))


def _told(result: Result) -> tuple[str, str]:
    """What a second test doesn't say again, and its kind: the place and the name of an exception that ended a test; or the message of one
    that failed, where there is nothing beside it."""
    outcome = result.outcome
    if outcome.trouble == RAISED and (found := re.match(r"[^\n]+?:\d+: \w+", outcome.message)):
        return "exception ", found[0]
    alone = not (outcome.passed or outcome.given or outcome.expected or outcome.found or outcome.drawing)
    return "", outcome.message if alone else ""


def end(done: Grade) -> int:
    """Prints what remains to be said of a grade. Returns the exit status."""
    if done.note and done.note != done.problem:
        click.echo(filled(f"note: {done.note}", "", "  "))
    if done.problem:
        click.echo(printable_lines(done.problem))
        click.echo(f"for that reason no test was run: {counted(len(done.results), 'test')} with 0 points")
    for line in printed_lines(done.printed, False, "--json RESULTS.json"):
        click.echo(line)
    for result in done.results:
        if result.fault:
            say(result.fault)
    for words in done.like:
        click.echo(filled(f"for you to judge: {words}", "", "  "))
    click.echo(f"{done.score:g} of {done.most:g} points; {counted(len(done.results), 'test')}")
    return 0 if not done.problem and all(result.outcome.passed for result in done.results) else 1


def write_pictures(done: Grade, folder: Path) -> None:
    """Writes a picture for each test that has one, or whose drawing is one of characters."""
    if (folder / "check").is_symlink():
        raise UsageError(Diagnostic("E0505", f"can't write pictures to {printable(str(folder / 'check'))}: it is a link"))
    drawn = dict[str, bytes]()
    for result in done.results:
        outcome, name = result.outcome, f"{file_name(result.test.name)}.svg"
        if outcome.picture or outcome.drawing:
            svg = outcome.picture() if outcome.picture else characters_svg(result.test.name, outcome.drawing)
            drawn[name] = svg.encode()
        (folder / "check" / name).unlink(missing_ok=True)  # an earlier run's
    if drawn:
        write_files(folder / "check", drawn)
        click.echo(filled(f"pictures: {', '.join(printable(str(folder / 'check' / name)) for name in drawn)}", "", "  "))
