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
from tpucc.frontend.limits import Limits
from tpucc.frontend.problem import LimitReached, Problem, span_of

CLOSERS = {"(": ")", "[": "]", "{": "}"}
OPENERS = {close: opener for opener, close in CLOSERS.items()}
WORDS = {" ": "spaces", "\t": "tabs"}


class Layout(PostLex):
    """The layout of a module. One instance serves any number of parses: what a parse remembers is in its `_Lines`."""

    always_accept = ("_NEWLINE",)

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        lines = _Lines(self.limits)
        for token in stream:
            yield from lines.take(token)
        yield from lines.finish()


class Flat(PostLex):
    """The layout of a lone expression: newlines mean nothing."""

    always_accept = ("_NEWLINE",)

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        brackets = _Brackets(self.limits)
        for token in stream:
            brackets.take(token)
            if token.type != "_NEWLINE":
                yield token


@dataclass
class _Brackets:
    """The brackets that are open."""

    limits: Limits
    open: list[Token] = field(default_factory=list)

    def take(self, token: Token) -> None:
        text = str(token)
        if text in CLOSERS:
            self.open.append(token)
            if len(self.open) > self.limits.brackets:
                raise LimitReached(
                    "E0602",
                    f"more than {self.limits.brackets} brackets inside each other",
                    span_of(token),
                    "",
                    "name parts of the expression",
                )
        elif text in OPENERS:
            self._close(token, text)

    def _close(self, token: Token, text: str) -> None:
        if not self.open:
            raise Problem("E0111", f"this {text} closes nothing", span_of(token), f"no {OPENERS[text]} is open here")
        opener = self.open.pop()
        if CLOSERS[str(opener)] != text:
            note = Label(span_of(opener), f"the {opener} that is open here")
            raise Problem("E0111", f"expected {CLOSERS[str(opener)]}, found {text}", span_of(token), notes=(note,))


@dataclass
class _Lines:
    """The state of one pass over the tokens.

    A newline is answered at once, from the blanks that it ends with: the contextual lexer looks for the next token only when the parser
    has taken in that a new statement begins.
    """

    limits: Limits
    brackets: _Brackets = field(init=False)
    indents: list[int] = field(default_factory=lambda: [0])
    blank: str = ""
    """The character that this file is indented with, once it is known, and where it was first seen."""
    seen_at: Span | None = None
    last: Token | None = None

    def __post_init__(self) -> None:
        self.brackets = _Brackets(self.limits)

    def take(self, token: Token) -> Iterator[Token]:
        if token.type != "_NEWLINE":
            if self.last is None:
                self._require_left_edge(token)
            self.brackets.take(token)
            self.last = token
            yield token
        elif not self.brackets.open:
            yield from self._start_line(token)

    def finish(self) -> Iterator[Token]:
        if self.brackets.open:
            raise unclosed(self.brackets.open[-1])
        for _ in self.indents[1:]:
            yield Token.new_borrow_pos("_DEDENT", "", self.last or Token("_DEDENT", ""))

    def _start_line(self, newline: Token) -> Iterator[Token]:
        """Ends a line and sets the indentation of the next."""
        lead = _Lead(newline)
        width = self._width(lead)
        if self.last is None:
            self._require_left_edge(newline, width)
            return
        self._require_block(self.last, width)
        yield newline
        if width > self.indents[-1]:
            self._indent(lead, self.last)
            yield Token.new_borrow_pos("_INDENT", "", newline)
        while width < self.indents[-1]:
            self.indents.pop()
            yield Token.new_borrow_pos("_DEDENT", "", newline)
        if width != self.indents[-1]:
            mend = "align it with the block that it belongs to"
            raise Problem("E0108", "this line's indentation matches no line above", lead.span, "", mend, final=True)

    def _require_left_edge(self, token: Token, width: int = 0) -> None:
        """The first line of a file has nothing to be indented under."""
        if width or (token.type != "_NEWLINE" and token.line == 1 and token.column != 1):
            end = Span(token.end_line or 1, 1, token.end_line or 1, width + 1) if width else Span(1, 1, 1, token.column or 1)
            mend = "start the line at its left edge"
            raise Problem(
                "E0108", "this line is indented, and no line above opens a block", end, "unexpected indentation", mend, final=True
            )

    def _require_block(self, last: Token, width: int) -> None:
        if last == ":" and width <= self.indents[-1]:
            mend = "indent what belongs to it by four spaces; `pass` stands for nothing"
            raise Problem("E0109", "nothing is indented under this line", span_of(last), "expected a block after this colon", mend)

    def _indent(self, lead: _Lead, last: Token) -> None:
        if last != ":":
            mend = "move it to the left, in line with the statement above"
            raise Problem(
                "E0108", "this line is indented, and no line above opens a block", lead.span, "unexpected indentation", mend, final=True
            )
        self.indents.append(len(lead.blanks))
        if len(self.indents) - 1 > self.limits.blocks:
            raise LimitReached(
                "E0602", f"more than {self.limits.blocks} blocks inside each other", lead.span, "", "move the inner ones into a def"
            )

    def _width(self, lead: _Lead) -> int:
        """The width of an indentation; checks that the file keeps to one character."""
        found = lead.blanks[:1]
        if len(set(lead.blanks)) > 1:
            mend = "use one of them in the whole file: spaces are usual"
            raise Problem("E0107", "this line is indented with both tabs and spaces", lead.span, "", mend, final=True)
        if found and self.blank and found != self.blank:
            raise _mixed(lead.span, found, self.blank, self.seen_at or lead.span)
        if found and not self.blank:
            self.blank, self.seen_at = found, lead.span
        return len(lead.blanks)


class _Lead:
    """The blanks that a line starts with, from the newline token before it."""

    def __init__(self, newline: Token) -> None:
        self.blanks = newline.rpartition("\n")[2].replace("\f", "")
        line = newline.end_line or 1
        self.span = Span(line, 1, line, newline.end_column or 1)


def unclosed(opener: Token) -> Problem:
    """The error of a bracket that is still open where something else begins."""
    return Problem("E0110", f"this {opener} is never closed", span_of(opener), f"expected a {CLOSERS[str(opener)]} to close it")


def _mixed(place: Span, found: str, usual: str, first: Span) -> Problem:
    message = f"this line is indented with {WORDS[found]}, and the file with {WORDS[usual]}"
    note = Label(first, f"{WORDS[usual]} were used first here")
    return Problem(
        "E0107", message, place, "", f"indent with {WORDS[usual]} everywhere, or change the whole file", notes=(note,), final=True
    )
