"""A page for each student of a graded class: the points, and what public tests found. Of hidden tests it has the points alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file
from tpucc.see.kit import Section, document, soft
from tpucc.see.svg import Markup, escaped, joined, row, table, tag

VISIBLE = "visible"
"""The visibility of a public test's results; what others found is for instructors."""
MOST = 2**24
"""Bytes of a submission's results."""


def pages_of(results: Path) -> dict[str, bytes]:
    """The pages of a folder that `grade --all` wrote, by their files' names. Raises `UsageError` E0551 where it has no results."""
    found = {path.stem: told for path in sorted(results.glob("*.json")) if (told := _read(path)) is not None}
    if not found:
        message = f"{printable(str(results))} has no results of a class"
        raise UsageError(Diagnostic("E0551", message, help=("tpucc lab grade FOLDER --all --into RESULTS writes them",)))
    return {f"{name}.html": _page(name, told).encode() for name, told in found.items()}


def _read(path: Path) -> dict[str, Any] | None:
    """The results in a file; None for a file of something else, and for results that aren't whole."""
    try:
        told = json.loads(read_file(path, most=MOST))
        return told if told["extra_data"]["lab"] is not None and isinstance(told["tests"], list) else None
    except (ValueError, KeyError, TypeError):
        return None


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
