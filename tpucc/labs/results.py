"""A grade as files: Gradescope's `results.json`, which is tpucc's own form too, and lines for a terminal."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from tpucc.diagnostics import counted, printable
from tpucc.labs.grading import Grade, Result
from tpucc.labs.submissions import FILE
from tpucc.output_files import write_file
from tpucc.prose import folded
from tpucc.version import VERSION

WIDTH, LINES, PRINTED = 74, 40, 10
"""Characters and lines of what was given, expected or found, that a terminal shows, and lines of what was printed."""


def as_json(grade: Grade, details: bool = False) -> dict[str, Any]:
    """A grade in the form that Gradescope reads, with more under `extra_data`.

    Students read it once the grades are published, so that of a hidden test it has the points and nothing that the submission said: no
    answer, no exception's text, nothing that it printed. Measures of hidden tests stand in the leaderboard only, and are rounded: with all
    their digits, the seed can be found that explains them. With `details`, which are for instructors, it has all of these, and what of
    tpucc's own the submission is like.
    """
    rows = [_row(result, grade, details) for result in grade.results]
    told_all = details or not any(test.hidden for test in grade.tests)
    lab, whole, measures = grade.lab, len(rows) == len(grade.tests), grade.measures
    problem = grade.problem or ("" if whole else "not all tests have run")
    told: dict[str, Any] = {
        "score": grade.score,
        "max_score": grade.most,
        "output": "\n".join(dict.fromkeys(filter(None, (printable_lines(problem), grade.note)))),
        "tests": rows,
        "extra_data": {
            "lab": lab.number,
            "name": lab.name,
            "term": grade.term.name,
            "version": VERSION,
            "isolation": grade.isolation,
            "digest": grade.digest,
            "date": grade.date,
            "note": grade.note if grade.note != grade.problem else "",
            "complete": bool(grade.problem) or whole,
            "printed": printable_lines(grade.printed),
            **({"measures": measures} if told_all else {}),
            **({"like": list(grade.like)} if details else {}),
        },
        "stdout_visibility": "hidden",
    }
    if lab.ranks and lab.ranks in measures:
        shown = measures if told_all else {name: _rounded(value) for name, value in measures.items()}
        told["leaderboard"] = [{"name": name, "value": value, "order": "asc"} for name, value in shown.items()]
    return told


def _rounded(value: float) -> float:
    """To three digits, of which at most two are decimals: 1.03, 45.2, 12,300."""
    return round(value, min(2, 2 - math.floor(math.log10(abs(value))))) if value and math.isfinite(value) else value


def write_json(grade: Grade, path: Path, details: bool = False) -> None:
    """Writes `results.json`, whole at every time; with `details` of hidden tests, for instructors."""
    write_file(path, (json.dumps(as_json(grade, details), indent=1) + "\n").encode())


def _row(result: Result, grade: Grade, details: bool) -> dict[str, Any]:
    test = result.test
    here = replace(grade, origin=".", seed=None)  # where it is read, neither place nor seed are the grader's
    return {
        "name": test.name,
        "score": result.score,
        "max_score": test.points,
        "status": "passed" if result.outcome.passed else "failed",
        "output": report(result, here) if details or not test.hidden else _verdict(result),
        "visibility": "visible" if not test.hidden else "hidden" if details else "after_published",
    }


def _verdict(result: Result) -> str:
    """What a student reads of a hidden test: nothing that the submission could have written."""
    earned = "all points" if result.outcome.passed else "a part of the points" if result.score else "no points"
    return f"{earned}: {result.outcome.trouble}" if result.outcome.trouble else earned


def report(result: Result, grade: Grade, whole: bool = True, width: int | None = None) -> str:
    """What a test found, in lines: the message, what was given, expected and found, how to repeat it, and what the submission printed.
    Unless it shall be `whole`, long values are cut, which is said. The message is folded to `width`, if given."""
    outcome = result.outcome
    message = printable_lines(outcome.message)
    parts = ["\n".join(_folded(line, width) for line in message.splitlines()) if width else message]
    if not outcome.passed:
        said = (("given", outcome.given), ("expected", outcome.expected), ("found", outcome.found))
        told = [f"{name + ':':<10}{printable_lines(text)}" for name, text in said if text]
        shown = told if whole else [_cut(text) for text in told]
        parts += [*shown, *([f"          (cut; {_json(result)} writes all of it)"] if shown != told else [])]
        parts += [outcome.drawing] if outcome.drawing else []
        parts += [f"again:    {again}"] if (again := repeat(result, grade)) else []
    parts += printed_lines(result.printed, whole, _json(result))
    return "\n".join(part for part in parts if part)


def printed_lines(text: str, whole: bool, writes: str) -> list[str]:
    """What a submission printed, in lines that can't be taken for the report's own. Unless it shall be `whole`, the first of them, and
    the options that `writes` names for all."""
    lines = [f"  {printable(line)}" for line in text.splitlines()]
    shown = lines if whole else [_cut(line) for line in lines[:PRINTED]]
    more = len(lines) - len(shown)
    return [*(["printed:"] if lines else []), *shown, *([f"  … {counted(more, 'more line')}; {writes} writes them"] if more else [])]


def _json(result: Result) -> str:
    """The options that write what a terminal cuts."""
    return f"--json RESULTS.json{' --details' if result.test.hidden else ''}"


def _folded(line: str, width: int) -> str:
    """A sentence in lines of at most `width` characters, as far as its words allow; a line that begins with blanks keeps them."""
    blanks = line[: len(line) - len(line.lstrip())]
    return "\n".join(folded(line.lstrip(), width, blanks, f"{blanks}  "))


def _cut(text: str) -> str:
    """At most `LINES` lines of at most `WIDTH` characters."""
    lines = text.splitlines()
    kept = [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines[:LINES]]
    return "\n".join([*kept, *(["…"] if len(lines) > LINES else [])])


def repeat(result: Result, grade: Grade) -> str:
    """The command that runs this test again, with the seed that drew its inputs; nothing of a hidden one without a seed."""
    path = Path(grade.origin or ".")
    told = (path if path.is_dir() else path.parent) / FILE
    place = quote(printable(str(path)))
    variant = f" --lab {grade.lab.number}{f' --term {quote(grade.term.name)}' if grade.term.name else ''}"
    if grade.seed is None and not result.test.hidden:
        known = "" if told.is_file() or grade.origin == "." else variant
        return f"tpucc lab check {place}{known} --only {quote(result.test.name)}"
    return f"tpucc lab grade {place}{variant} --seed {grade.seed} --only {quote(result.test.name)}" if grade.seed is not None else ""


def file_name(name: str) -> str:
    """A test's name in those of its files."""
    return "".join(c if c.isalnum() else "_" for c in name)


def printable_lines(text: str) -> str:
    """Text of a submission's, safe for a terminal."""
    return "\n".join(printable(line) for line in text.splitlines())
