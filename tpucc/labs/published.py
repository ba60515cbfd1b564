"""Pages made of the results of a class: the leaderboard of a lab, best first, also as a table; and a page for each student, with the
points, and what public tests found. Of hidden tests it has the points alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tpucc.diagnostics import Diagnostic, Error, UsageError, printable
from tpucc.explain.tables import table as text_table
from tpucc.files import read_file
from tpucc.labs import find
from tpucc.labs.classes import first_line
from tpucc.labs.lab import Lab
from tpucc.see.kit import Section, document, soft
from tpucc.see.svg import Markup, escaped, joined, row, table, tag

LARGEST = 2**24
"""Bytes of a submission's results."""
VISIBLE = "visible"
"""The visibility of a public test's results; what others found is for instructors."""


class TestRow(msgspec.Struct):
    """A test in a file of results."""

    __test__ = False  # pytest collects classes of this name
    name: str
    score: float
    max_score: float = 0
    output: str = ""
    status: str = ""
    visibility: str = ""

    @property
    def points(self) -> str:
        return f"{self.score:g} of {self.max_score:g}"


class More(msgspec.Struct):
    """What tpucc writes of a submission besides what Gradescope reads. `measures` are there with `--details` alone."""

    lab: int
    name: str = ""
    term: str = ""
    note: str = ""
    digest: str = ""
    date: str = ""
    measures: dict[str, float] | None = None


class Results(msgspec.Struct):
    """A file of results (`results.as_json`), as far as it is read here."""

    extra_data: More
    score: float = 0
    max_score: float = 0
    output: str = ""
    tests: list[TestRow] = []


def _results(folder: Path) -> Iterator[tuple[str, Results | str]]:
    """The results in a folder by the names of their files, which are printable; or why a file has none."""
    for path in sorted(folder.glob("*.json")):
        found: Results | str
        try:
            found = msgspec.json.decode(read_file(path, most=LARGEST), type=Results)
        except Error:
            found = f"it is no regular file that can be read, of at most {LARGEST:,} bytes"
        except (msgspec.MsgspecError, RecursionError) as error:
            found = f"it has no results of a lab: {error}"
        yield printable(path.stem), found


@dataclass(frozen=True, slots=True)
class Board:
    """The results of a lab in their order, by the names of submissions. `left_out` says of each other file why it has no place."""

    lab: Lab
    entries: Mapping[str, More]
    left_out: tuple[str, ...] = ()

    def measure(self, name: str, measure: str) -> str:
        found = (self.entries[name].measures or {}).get(measure)
        return "" if found is None else f"{found:,.6g}"

    def rows(self) -> Iterator[Sequence[str]]:
        """The head of the table, and a row for each submission: its rank, which equal measures have alike, the measure that ranks, the
        other measures, when its newest file was written (UTC), as the file says, and its hash."""
        names = dict.fromkeys(name for more in self.entries.values() for name in more.measures or {})
        columns = [self.lab.ranks, *(name for name in names if name != self.lab.ranks)]
        yield "", "name", *map(printable, columns), "date", "submission"
        ranked = [self.measure(name, self.lab.ranks) for name in self.entries]
        for name, more in self.entries.items():
            rank = ranked.index(self.measure(name, self.lab.ranks)) + 1
            measures = (self.measure(name, column) for column in columns)
            yield str(rank), name, *measures, printable(more.date)[:19], printable(more.digest)[:16]


def board(folder: Path) -> Board:
    """The board of all results in a folder. Those without the measure that ranks are left out: their programs were wrong. Raises
    `UsageError` E0550 where the results are of several labs or terms, or of a lab without a leaderboard."""
    told = list(_results(folder))
    results = {name: found for name, found in told if isinstance(found, Results)}
    numbers, terms = ({getattr(found.extra_data, key) for found in results.values()} for key in ("lab", "term"))
    if len(numbers) != 1 or len(terms) != 1:
        what = "no results" if not numbers else f"the results of more than one {'lab' if len(numbers) > 1 else 'term'}"
        help = "tpucc lab grade --all FOLDER --into RESULTS writes them"
        raise UsageError(Diagnostic("E0550", f"{printable(str(folder))} has {what}", help=(help,)))
    lab = find(numbers.pop())
    if not lab.ranks:
        raise UsageError(Diagnostic("E0550", f"lab {lab.number} ({lab.name}) has no leaderboard"))
    ranked = {name: found.extra_data for name, found in results.items() if lab.ranks in (found.extra_data.measures or {})}
    left = [(name, found if isinstance(found, str) else f"it has no {lab.ranks}: {_unranked(found)}") for name, found in told]
    left_out = tuple(f"{name}.json: {printable(why)}" for name, why in left if name not in ranked)
    ordered = sorted(ranked.items(), key=lambda item: ((item[1].measures or {})[lab.ranks], item[0]))
    return Board(lab, dict(ordered), left_out)


def _unranked(found: Results) -> str:
    """Why results have no measure that ranks."""
    if problem := found.output.removesuffix(found.extra_data.note).strip():
        return first_line(problem)
    if found.extra_data.measures is None:
        return "--details was not given to grade"
    lost = [test.name for test in found.tests if test.visibility == "hidden" and not test.score]
    return f"no points for {lost[0]}" if lost else "the test that measures it was not run"


def as_text(board: Board) -> str:
    """The table for a terminal."""
    head, *rows = board.rows()
    return text_table(head, rows, left=len(head), width=sys.maxsize)


def as_page(board: Board) -> str:
    """The table as a page that stands alone."""
    head, *rows = board.rows()
    shown = tag("div", table(head, [row(map(escaped, cells)) for cells in rows]), class_="scroll", tabindex=0)
    title = f"Lab {board.lab.number}: {board.lab.title}"
    words = f"Sorted by {board.lab.ranks}, the least first; equal ones have one rank, and stand in the order of their names."
    return document(__package__, title, words, [("board", "Board", shown)], sheet="texts/board.css")


def pages_of(folder: Path) -> dict[str, bytes]:
    """The pages of a folder that `grade --all` wrote, by their files' names. Raises `UsageError` E0551 where it has no results."""
    found = {f"{name}.html": _page(name, told).encode() for name, told in _results(folder) if isinstance(told, Results)}
    if not found:
        message = f"{printable(str(folder))} has no results of a class"
        raise UsageError(Diagnostic("E0551", message, help=("tpucc lab grade FOLDER --all --into RESULTS writes them",)))
    return found


def _page(student: str, told: Results) -> str:
    more = told.extra_data
    title = f"Lab {more.lab} ({more.name}){f', term {more.term}' if more.term else ''}: {student}"
    return document(__package__, title, f"{told.score:g} of {told.max_score:g} points", list(_sections(told)))


def _sections(told: Results) -> Iterator[Section]:
    if told.output:
        yield "note", "Note", tag("pre", escaped(told.output))
    if public := [test for test in told.tests if test.visibility == VISIBLE]:
        yield "public", "Public tests", joined([soft("Those that tpucc lab check runs."), *map(_test, public)])
    if hidden := [test for test in told.tests if test.visibility != VISIBLE]:
        words = "Their inputs are drawn anew. They look for what the handout says."
        rows = [row(map(escaped, (test.name, test.points))) for test in hidden]
        yield "hidden", "Hidden tests", joined([soft(words), table(("test", "points"), rows, class_="words")])


def _test(test: TestRow) -> Markup:
    summary = tag("summary", tag("strong", escaped(printable(test.name))), tag("span", escaped(f"{test.points} points"), class_="soft"))
    return tag("details", summary, tag("pre", escaped(test.output)), attributes={} if test.status == "passed" else {"open": ""})
