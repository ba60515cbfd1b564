"""Pages made of the results of a class: the leaderboard of a lab, best first, also as a table; and a page for each student, with the
points, and what public tests found. Of hidden tests it has the points alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, Error, UsageError, printable
from tpucc.files import read_file
from tpucc.labs import NAMES, find
from tpucc.labs.classes import first_line
from tpucc.labs.lab import Lab
from tpucc.see.kit import Section, document, soft
from tpucc.see.svg import Markup, escaped, joined, row, table, tag

LARGEST = 2**24
"""Bytes of a submission's results."""
VISIBLE = "visible"
"""The visibility of a public test's results; what others found is for instructors."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One submission: its name, its measures, its hash, and when its newest file was written (UTC), as the file says. All texts are
    printable."""

    name: str
    measures: dict[str, float]
    submission: str
    date: str


@dataclass(frozen=True, slots=True)
class Board:
    """The entries of a lab in their order. `left_out` says of each other file why it has no place."""

    lab: Lab
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The measure that ranks, then the others."""
        others = dict.fromkeys(name for entry in self.entries for name in entry.measures)
        return (self.lab.ranks, *(name for name in others if name != self.lab.ranks))


def board(folder: Path) -> Board:
    """The board of all results in a folder. Those without the measure that ranks are left out: their programs were wrong. Raises
    `UsageError` E0550 where the results are of several labs or terms, or of a lab without a leaderboard."""
    told = {path.stem: _results(path) for path in sorted(folder.glob("*.json"))}
    results = [found["extra_data"] for found in told.values() if isinstance(found, dict)]
    numbers, terms = {found["lab"] for found in results}, {str(found.get("term", "")) for found in results}
    if len(numbers) != 1 or len(terms) != 1:
        what = "no results" if not numbers else f"the results of more than one {'lab' if len(numbers) > 1 else 'term'}"
        help = "tpucc lab grade --all FOLDER --into RESULTS writes them"
        raise UsageError(Diagnostic("E0550", f"{printable(str(folder))} has {what}", help=(help,)))
    lab = find(str(numbers.pop()))
    if not lab.ranks:
        raise UsageError(Diagnostic("E0550", f"lab {lab.number} ({lab.name}) has no leaderboard"))
    read = {name: _entry(name, found, lab) if isinstance(found, dict) else found for name, found in told.items()}
    entries = [entry for entry in read.values() if isinstance(entry, Entry)]
    left_out = tuple(f"{printable(name)}.json: {why}" for name, why in read.items() if isinstance(why, str))
    return Board(lab, tuple(sorted(entries, key=lambda entry: (entry.measures[lab.ranks], entry.name))), left_out)


def _results(path: Path) -> dict[str, Any] | str:
    """A file of results, or why it is none."""
    try:
        found = json.loads(read_file(path, most=LARGEST))
        return found if type(found["extra_data"]["lab"]) is int and found["extra_data"]["lab"] in NAMES else "it is of no lab"
    except Error:
        return f"it is no regular file that can be read, of at most {LARGEST:,} bytes"
    except (ValueError, RecursionError):
        return "it is no JSON"
    except (KeyError, TypeError):
        return "it has no results of a lab"


def _entry(name: str, found: dict[str, Any], lab: Lab) -> Entry | str:
    """The entry of a file of results, or why it has no place."""
    more = found["extra_data"]
    try:
        measures = {printable(str(key)): float(value) for key, value in more.get("measures", {}).items()}
    except (AttributeError, TypeError, ValueError, OverflowError):
        return "its measures are no numbers"
    if any(map(math.isnan, measures.values())):
        return "its measures are no numbers"
    if lab.ranks not in measures:
        return f"it has no {lab.ranks}: {printable(first_line(_unranked(found)))}"
    return Entry(printable(name), measures, *(printable(str(more.get(key, "")))[:most] for key, most in (("digest", 16), ("date", 19))))


def _unranked(found: dict[str, Any]) -> str:
    """Why results have no measure that ranks."""
    more, tests = found["extra_data"], found.get("tests")
    if problem := str(found.get("output") or "").removesuffix(str(more.get("note") or "")).strip():
        return problem
    if "measures" not in more:
        return "--details was not given to grade"
    rows = [row for row in tests if isinstance(row, dict)] if isinstance(tests, list) else []
    lost = [str(row.get("name")) for row in rows if row.get("visibility") == "hidden" and not row.get("score")]
    return f"no points for {lost[0]}" if lost else "the test that measures it was not run"


def as_text(board: Board) -> str:
    """The table for a terminal."""
    rows = [("", "name", *board.columns, "date", "submission"), *(_cells(rank, entry, board) for rank, entry in _ranked(board))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def as_page(board: Board) -> str:
    """The table as a page that stands alone."""
    rows = (row(map(escaped, _cells(rank, entry, board))) for rank, entry in _ranked(board))
    shown = tag("div", table(("", "name", *board.columns, "date", "submission"), rows), class_="scroll", tabindex=0)
    title = f"Lab {board.lab.number}: {board.lab.title}"
    words = f"Sorted by {board.lab.ranks}, the least first; equal ones have one rank, and stand in the order of their names."
    return document(__package__, title, words, [("board", "Board", shown)], sheet="texts/board.css")


def _ranked(board: Board) -> Sequence[tuple[int, Entry]]:
    """Entries with their ranks: equal measures have the same."""
    values = [entry.measures[board.lab.ranks] for entry in board.entries]
    return [(values.index(value) + 1, entry) for value, entry in zip(values, board.entries, strict=True)]


def _cells(rank: int, entry: Entry, board: Board) -> tuple[str, ...]:
    measures = (f"{entry.measures[name]:,.6g}" if name in entry.measures else "" for name in board.columns)
    return (str(rank), entry.name, *measures, entry.date, entry.submission)


def pages_of(folder: Path) -> dict[str, bytes]:
    """The pages of a folder that `grade --all` wrote, by their files' names. Raises `UsageError` E0551 where it has no results."""
    found = {path.stem: told for path in sorted(folder.glob("*.json")) if isinstance(told := _results(path), dict) and "tests" in told}
    if not found:
        message = f"{printable(str(folder))} has no results of a class"
        raise UsageError(Diagnostic("E0551", message, help=("tpucc lab grade FOLDER --all --into RESULTS writes them",)))
    return {f"{name}.html": _page(name, told).encode() for name, told in found.items()}


def _page(student: str, told: Mapping[str, Any]) -> str:
    more = told["extra_data"]
    variant = f", term {more['term']}" if more.get("term") else ""
    title = f"Lab {more['lab']} ({more.get('name', '')}){variant}: {student}"
    return document(__package__, title, f"{told['score']:g} of {told['max_score']:g} points", list(_sections(told)))


def _sections(told: Mapping[str, Any]) -> Iterator[Section]:
    public = [test for test in told["tests"] if test.get("visibility") == VISIBLE]
    hidden = [test for test in told["tests"] if test.get("visibility") != VISIBLE]
    if output := str(told.get("output", "")):
        yield "note", "Note", tag("pre", escaped(output))
    if public:
        yield "public", "Public tests", joined([soft("Those that tpucc lab check runs."), *map(_test, public)])
    if hidden:
        words = "Their inputs are drawn anew. They look for what the handout says."
        rows = [row(map(escaped, (str(test["name"]), f"{test['score']:g} of {test['max_score']:g}"))) for test in hidden]
        yield "hidden", "Hidden tests", joined([soft(words), table(("test", "points"), rows, class_="words")])


def _test(test: Mapping[str, Any]) -> Markup:
    head = tag("strong", escaped(printable(str(test["name"]))))
    points = tag("span", escaped(f"{test['score']:g} of {test['max_score']:g} points"), class_="soft")
    wanting = {} if test["status"] == "passed" else {"open": ""}
    return tag("details", tag("summary", head, points), tag("pre", escaped(str(test["output"]))), attributes=wanting)
