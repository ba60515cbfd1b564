"""A look at the source around a syntax error, without the parser: which statement it is in, and which brackets are open there."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from tpucc.diagnostics import Span

PIECE = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(?P<blank>(?:[ \t\r\f]|\#[^\n]*|\\[ \t]*\r?\n)+)|(?P<newline>\n)"""
    r"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>[A-Za-z_0-9]+)|(?P<other>.)"""
)


@dataclass(frozen=True)
class Statement:
    """The statement that an offset of the text lies in: its first offset, and the pieces before that offset."""

    start: int
    pieces: tuple[re.Match[str], ...]
    brackets: tuple[re.Match[str], ...]
    """The brackets that are open, the outermost first."""

    @property
    def first(self) -> str:
        return self.pieces[0][0] if self.pieces else ""

    @property
    def previous(self) -> str:
        return self.pieces[-1][0] if self.pieces else ""


class Text:
    """A text with the offsets of its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def offset(self, line: int, column: int) -> int:
        return self.lines[min(line, len(self.lines)) - 1] + column - 1

    def line_of(self, offset: int) -> int:
        return bisect_right(self.lines, offset)

    def span(self, start: int, end: int) -> Span:
        """The span of a stretch of one line."""
        line = self.line_of(start)
        first = self.lines[line - 1]
        return Span(line, start - first + 1, line, end - first + 1)

    def indentation(self, line: int) -> str:
        """The blanks that a one-based line starts with."""
        found = re.compile(r"[ \t]*").match(self.text, self.lines[line - 1])
        return found.group() if found else ""

    def statement_at(self, offset: int) -> Statement:
        """The statement around `offset`; the text before it must be sound."""
        start, pieces, brackets = 0, list[re.Match[str]](), list[re.Match[str]]()
        for piece in PIECE.finditer(self.text, 0, offset):
            if piece.lastgroup == "newline" and not brackets:
                start, pieces = piece.end(), []
            elif piece.lastgroup == "open":
                brackets.append(piece)
            elif piece.lastgroup == "close" and brackets:
                brackets.pop()
            if piece.lastgroup not in ("blank", "newline"):
                pieces.append(piece)
        return Statement(start, tuple(pieces), tuple(brackets))

    def statement_end(self, start: int, offset: int) -> int:
        """Where the statement that begins at `start` and is wrong at `offset` may be taken to end: the offset of a newline.

        Brackets continue it, but not onto a line that begins at or left of its own edge: a bracket that is never closed would
        otherwise swallow the file.
        """
        edge = len(self.indentation(self.line_of(start)))
        depth = 0
        for piece in PIECE.finditer(self.text, start):
            if piece.lastgroup == "open":
                depth += 1
            elif piece.lastgroup == "close":
                depth = max(0, depth - 1)
            elif piece.lastgroup == "newline" and self._ends_here(piece.start(), offset, depth, edge):
                return piece.start()
        return len(self.text)

    def _ends_here(self, newline: int, offset: int, depth: int, edge: int) -> bool:
        """Whether a statement ends at this newline: outside of brackets past `offset`, inside only where the next line starts anew."""
        if depth == 0:
            return newline >= offset
        found = re.compile(r"[ \t]*([^\s#)\]}])").match(self.text, newline + 1)
        return found is not None and found.start(1) - newline - 1 <= edge
