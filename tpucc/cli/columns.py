"""Prose and lists for a terminal of 80 columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TextIO

from tpucc.prose import folded

WIDTH = 80
FENCE = "```"
SET_APART = ("#", "|", "-", ">", " ", FENCE)
"""The beginnings of lines of Markdown that aren't prose: headings, tables, lists, quotations, and indented lines."""
HANGING = {"- ": "  ", "> ": "> "}
"""How an item of a list or a quotation begins, and what stands before its further lines."""


def filled(text: str, first: str = "", indent: str = "") -> str:
    """A sentence in lines of 80 columns: `first` before the first one, `indent` before the others. Words stay whole."""
    return "\n".join(folded(text, WIDTH, first, indent))


def table_width() -> int:
    """The columns that a table on standard output may take: what COLUMNS says or a terminal has, and 80 at least."""
    return max(columns_of(sys.stdout), WIDTH)


def columns_of(stream: TextIO) -> int:
    """What COLUMNS says, or the terminal has that a stream is; 0 where neither says a number."""
    try:
        return int(os.environ.get("COLUMNS") or (os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0))
    except (ValueError, OSError):
        return 0


def described(name: str, width: int, text: str) -> str:
    """A name in a column of its own and what it is beside it, in as many lines as that takes."""
    return filled(text, f"{name:<{width}} ", " " * (width + 1))


def prose(markdown: str) -> str:
    """Markdown with its paragraphs in lines of 80 columns; programs, headings and tables stay as they are."""
    return "\n".join(_lines(markdown))


def _lines(markdown: str) -> Iterator[str]:
    paragraph: list[str] = []
    fenced = False
    for line in f"{markdown.rstrip()}\n".split("\n"):
        fenced ^= line.startswith(FENCE)
        if line and not fenced and not line.startswith(SET_APART):
            paragraph.append(line)
            continue
        if paragraph:
            yield filled(" ".join(paragraph))
            paragraph.clear()
        yield filled(line, "", HANGING[line[:2]]) if line[:2] in HANGING and not fenced else line
