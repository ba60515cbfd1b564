"""What `tpucc lab check` and `grade` print and draw of the results of one submission."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from tpucc.cli.columns import filled
from tpucc.cli.messages import room_of, say
from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.labs.grading import Grade, Result
from tpucc.labs.results import file_name, printable_lines, printed_lines, report, write_json
from tpucc.labs.timelines import characters_svg
from tpucc.output_files import write_files

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
    raised = _raised(result)
    if (earlier := next((other for other in sofar.results[:-1] if raised and _raised(other) == raised), None)) is not None:
        return f"{head}\n{INDENT}the same exception as in `{earlier.test.name}`"
    if (earlier := next((other for other in sofar.results[:-1] if _told(result) and _told(other) == _told(result)), None)) is not None:
        return f"{head}\n{INDENT}the same as in `{earlier.test.name}`"
    room = room_of(sys.stdout)
    told = report(result, sofar, whole=False, width=room - len(INDENT) if room else None)
    return "\n".join((head, *(f"{INDENT}{line}" for line in told.splitlines())))


def _told(result: Result) -> str:
    """What a failed test's message says, where there is nothing beside it."""
    outcome = result.outcome
    return "" if outcome.passed or outcome.given or outcome.expected or outcome.found or outcome.drawing else outcome.message


def _raised(result: Result) -> str:
    """`allocation.py:9: ValueError`, of a test that an exception of the submission's ended; nothing of any other."""
    found = re.match(r"[^\n]+?:\d+: \w+", result.outcome.message) if result.trouble == RAISED else None
    return found[0] if found else ""


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
