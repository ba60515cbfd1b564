"""The scripts of a page, judged together: they share one scope, which a linter that reads file after file doesn't see."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import msgspec

RULES = Path(__file__).with_name("scope.oxlintrc.json")
LINTER = Path(sys.executable).with_name("oxlint")


class Span(msgspec.Struct):
    line: int


class Label(msgspec.Struct):
    span: Span


class Complaint(msgspec.Struct):
    message: str
    labels: Annotated[list[Label], msgspec.Meta(min_length=1)]


class Findings(msgspec.Struct):
    diagnostics: list[Complaint]


def scope_complaints(scripts: Mapping[str, str], folder: Path) -> list[str]:
    """`file:line: message` for each name that is undefined, unused, defined twice or used before it is there.

    `scripts` are the texts by file name, in the order in which the page has them; `folder` takes a file with all of them.
    """
    together = folder / "together.js"
    together.write_text("".join(text.rstrip("\n") + "\n" for text in scripts.values()), "utf-8")
    command = [LINTER, "--config", RULES, "--format", "json", together]
    result = subprocess.run(command, capture_output=True, check=False)
    found = msgspec.json.decode(result.stdout, type=Findings).diagnostics
    lines = sorted((complaint.labels[0].span.line, complaint.message) for complaint in found)
    return [f"{_place(scripts, line)}: {message}" for line, message in lines]


def _place(scripts: Mapping[str, str], line: int) -> str:
    """The file and the line in it of a line, counted from 1, of all together."""
    ends = list(accumulate(text.rstrip("\n").count("\n") + 1 for text in scripts.values()))
    index = bisect_right(ends, line - 1)
    return f"{list(scripts)[index]}:{line - (ends[index - 1] if index else 0)}"
