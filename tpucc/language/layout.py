"""Layout: from newlines and leading blanks to _NEWLINE, _INDENT and _DEDENT, and brackets that must pair.

The rules are Python's, but stricter: a file is indented with spaces or with tabs, not both, so that an indentation never depends on
how wide an editor shows a tab.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token
from lark.lark import PostLex

from tpucc.diagnostics import Label, Span
from tpucc.language.problem import LimitReached, Limits, Problem

CLOSERS = {"(": ")", "[": "]", "{": "}"}
OPENERS = {close: opener for opener, close in CLOSERS.items()}
WORDS = {" ": "spaces", "\t": "tabs"}
AT_EDGE = "start the line at its left edge"
"""The first line of a file has nothing to be indented under."""


def span_of(token: Token) -> Span:
    """The place of a token."""
    return Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)


class Layout(PostLex):
    """The layout of a module; or, where it is `flat`, of a lone expression, in which newlines mean nothing.

    One instance serves any number of parses: what a parse remembers is in its `_Lines`.
    """

    always_accept = ("_NEWLINE",)

    def __init__(self, limits: Limits, *, flat: bool = False) -> None:
        self.limits = limits
        self.flat = flat

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        lines = _Lines(self.limits)
        if not self.flat:
            for token in stream:
                yield from lines.take(token)
            yield from lines.finish()
            return
        for token in stream:
            lines.pair(token)
            if token.type != "_NEWLINE":
                yield token


@dataclass
class _Lines:
    """The state of one pass over the tokens: the brackets that are open, and the indentations of the blocks.

    A newline is answered at once, from the blanks that it ends with: the contextual lexer looks for the next token only when the parser
    has taken in that a new statement begins.
    """

    limits: Limits
    open: list[Token] = field(default_factory=list)
    indents: list[int] = field(default_factory=lambda: [0])
    blank: str = ""
    """The character that this file is indented with, once it is known, and where it was first seen."""
    seen_at: Span | None = None
    last: Token | None = None

    def pair(self, token: Token) -> None:
        """Takes note of a bracket. Raises `Problem` where it closes none of its kind."""
        text = str(token)
        if text in CLOSERS:
            self.open.append(token)
            if len(self.open) > self.limits.brackets:
                message = f"more than {self.limits.brackets} brackets inside each other"
                raise LimitReached("E0602", message, span_of(token), "", "name parts of the expression")
        elif text in OPENERS:
            if not self.open:
                raise Problem("E0111", f"this {text} closes nothing", span_of(token), f"no {OPENERS[text]} is open here")
            opener = self.open.pop()
            if CLOSERS[str(opener)] != text:
                note = Label(span_of(opener), f"the {opener} that is open here")
                raise Problem("E0111", f"expected {CLOSERS[str(opener)]}, found {text}", span_of(token), notes=(note,))

    def take(self, token: Token) -> Iterator[Token]:
        if token.type != "_NEWLINE":
            if self.last is None and token.line == 1 and token.column != 1:
                raise _indented(Span(1, 1, 1, token.column or 1), AT_EDGE)
            self.pair(token)
            self.last = token
            yield token
        elif not self.open:
            yield from self._start_line(token)

    def finish(self) -> Iterator[Token]:
        if self.open:
            raise unclosed(str(self.open[-1]), span_of(self.open[-1]))
        for _ in self.indents[1:]:
            yield Token.new_borrow_pos("_DEDENT", "", self.last or Token("_DEDENT", ""))

    def _start_line(self, newline: Token) -> Iterator[Token]:
        """Ends a line and sets the indentation of the next."""
        blanks = newline.rpartition("\n")[2].replace("\f", "")
        line, width = newline.end_line or 1, len(blanks)
        lead = Span(line, 1, line, newline.end_column or 1)
        self._require_one_kind(blanks, lead)
        if self.last is None:
            if width:
                raise _indented(Span(line, 1, line, width + 1), AT_EDGE)
            return
        if self.last == ":" and width <= self.indents[-1]:
            mend = "indent what belongs to it by four spaces; `pass` stands for nothing"
            raise Problem("E0109", "nothing is indented under this line", span_of(self.last), "expected a block after this colon", mend)
        yield newline
        if width > self.indents[-1]:
            if self.last != ":":
                raise _indented(lead, "move it to the left, in line with the statement above")
            self.indents.append(width)
            if len(self.indents) - 1 > self.limits.blocks:
                message = f"more than {self.limits.blocks} blocks inside each other"
                raise LimitReached("E0602", message, lead, "", "move the inner ones into a def")
            yield Token.new_borrow_pos("_INDENT", "", newline)
        while width < self.indents[-1]:
            self.indents.pop()
            yield Token.new_borrow_pos("_DEDENT", "", newline)
        if width != self.indents[-1]:
            mend = "align it with the block that it belongs to"
            raise Problem("E0108", "this line's indentation matches no line above", lead, "", mend, final=True)

    def _require_one_kind(self, blanks: str, lead: Span) -> None:
        """Checks that the file keeps to one character."""
        if len(set(blanks)) > 1:
            mend = "use one of them in the whole file: spaces are usual"
            raise Problem("E0107", "this line is indented with both tabs and spaces", lead, "", mend, final=True)
        found = blanks[:1]
        if found and self.seen_at is None:
            self.blank, self.seen_at = found, lead
        elif found and self.seen_at is not None and found != self.blank:
            usual = WORDS[self.blank]
            message = f"this line is indented with {WORDS[found]}, and the file with {usual}"
            mend, note = f"indent with {usual} everywhere, or change the whole file", Label(self.seen_at, f"{usual} were used first here")
            raise Problem("E0107", message, lead, "", mend, notes=(note,), final=True)


def _indented(span: Span, mend: str) -> Problem:
    """The error of an indentation under nothing. Which block a line belongs to isn't known then, nor what follows."""
    message = "this line is indented, and no line above opens a block"
    return Problem("E0108", message, span, "unexpected indentation", mend, final=True)


def unclosed(opener: str, span: Span) -> Problem:
    """The error of a bracket that is still open where something else begins."""
    return Problem("E0110", f"this {opener} is never closed", span, f"expected a {CLOSERS[opener]} to close it")
