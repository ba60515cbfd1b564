"""Messages on standard error: in colour and in short lines at a terminal, else a logical line each, as scripts read them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import TextIO

import click

from tpucc.cli.columns import WIDTH, columns_of
from tpucc.cli.streams import unread
from tpucc.diagnostics import Diagnostic, Source, columns
from tpucc.prose import glued, loose

NARROWEST = 20
TOKEN = r'(?:\[[^\[\]]{0,40}\]|(?<=\w)\([^()]{0,40}\)|`[^`]{0,40}`|"[^"\s][^"]{0,40}"|\S)+'
"""What stays whole: a word, with blanks where brackets or quotation marks hold it together, as in `f32[64, 128]`.

It is compiled when it is first used: only a terminal needs it."""
SOURCE_LINE = re.compile(r" *\d+ \| ")
CARETS = re.compile(r"( +\| +\^+) (.+)")
GUTTER = re.compile(r" +\| ")
INDENT = "  "


def say(text: str) -> None:
    """Prints a message, of several lines it may be, to standard error; a closed one changes nothing for the command."""
    with unread():
        _print(text, sys.stderr)


def warnings_of(found: Iterable[Diagnostic], source: Source, notes: Iterable[str]) -> list[str]:
    """The warnings of a source, and the notes of what was made of it, as they are printed."""
    return [*(warning.render(source) for warning in found), *(f"note: {note}" for note in notes)]


def tell(text: str) -> None:
    """Prints a message that is the command's result to standard output."""
    _print(text, sys.stdout)


def _print(text: str, stream: TextIO) -> None:
    room = room_of(stream)
    for line in text.split("\n"):
        click.echo(_painted(line, "\n".join(fitted(line, room)) if room else line), stream)


def room_of(stream: TextIO) -> int | None:
    """The columns that messages take: a terminal's own, or what COLUMNS says, but at most 80. None where it is no terminal."""
    return max(NARROWEST, min(columns_of(stream) or WIDTH, WIDTH)) if stream.isatty() else None


def fitted(line: str, room: int) -> list[str]:
    """A logical line in lines of at most `room` columns, as far as its tokens allow; lines of a source stay as they are."""
    if SOURCE_LINE.match(line) or columns(line) <= room:
        return [line]
    if marked := CARETS.fullmatch(line):
        carets, label = marked.groups()
        gutter = line[: line.index("|") + 2]
        start = columns(carets) + 1
        if room - start >= NARROWEST:
            first, *rest = _lines(label, room - start)
            return [f"{carets} {first}", *(f"{gutter:<{start}}{more}" for more in rest)]
        return [carets, *(f"{gutter}{more}" for more in _lines(label, max(NARROWEST, room - len(gutter))))]
    if GUTTER.match(line):
        return [line]
    first, *rest = _lines(line, room, room - len(INDENT))
    return [first, *(INDENT + more for more in rest)]


def _lines(text: str, room: int, then: int | None = None) -> list[str]:
    """Tokens in lines of `room` columns, those after the first of `then`; a longer token has a line of its own."""
    lines: list[str] = []
    for token in re.findall(TOKEN, glued(text)):
        most = room if len(lines) < 2 or then is None else then
        if lines and columns(lines[-1]) + 1 + columns(token) <= most:
            lines[-1] += f" {token}"
        else:
            lines.append(token)
    return [*map(loose, lines)]


def _painted(line: str, shown: str) -> str:
    """What is shown of a logical line, in its colour; click drops colours where they don't belong."""
    if os.environ.get("NO_COLOR"):
        return shown
    if ": error " in line or line.startswith("error "):
        return click.style(shown, bold=True)
    if line.lstrip().startswith("|"):
        return click.style(shown, fg="red")
    return click.style(shown, fg="cyan") if line.startswith("help:") else shown
