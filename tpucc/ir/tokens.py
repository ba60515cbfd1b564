"""The words of the graphs' text form, one line at a time, and what is wrong with a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tpucc.diagnostics import LineError, Span, printable
from tpucc.ir.codec import MAX_INTEGER_CHARACTERS, line_error, unquote

SYNTAX = "E0730"
MAX_FLOAT_CHARACTERS = 400
"""Characters of a number with a point or an exponent: more than the shortest form of any float has."""
_NAME = r"[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*"
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r\f\ufeff]+|\#.*)
      | (?P<span>\d+:\d+-\d+(?::\d+)?)
      | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-inf\b)
      | (?P<name>{_NAME})
      | (?P<string>"(?:[^"\\]|\\.?)*+"?)
      | (?P<mark>[()\[\]{{}}=,:@])
      | (?P<other>.)""",
    re.VERBOSE | re.ASCII,
)
PLAIN_NAME = re.compile(_NAME)
"""Names that stand in the text as they are; all others are quoted."""


class Token(NamedTuple):
    """A word: its kind (a group of the token expression, or "end"), its text, and its place."""

    kind: str
    text: str
    line: int
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.line, self.start, self.line, self.end)

    def __str__(self) -> str:
        return "the end of the line" if self.kind == "end" else printable(self.text)


class Cursor:
    """The tokens of one line and a place among them."""

    def __init__(self, text: str, line: int) -> None:
        found = (Token(m.lastgroup or "", m[0], line, m.start() + 1, m.end() + 1) for m in _TOKEN.finditer(text))
        self._tokens = [token for token in found if token.kind != "blank"]
        end = len(text.rstrip()) + 1
        self._tokens.append(Token("end", "", line, end, end + 1))
        self._at = 0

    @property
    def next(self) -> Token:
        """The token that `take` will give."""
        return self._tokens[self._at]

    @property
    def first(self) -> Token:
        """The first token of the line."""
        return self._tokens[0]

    @property
    def after_next(self) -> Token:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        """Takes the next token if it is the mark or word `text`."""
        found = self.next.text == text and self.next.kind in ("mark", "name")
        if found:
            self.take()
        return found

    def expect(self, text: str, where: str) -> Token:
        token = self.next
        if not self.accept(text):
            raise self.error(f"expected {text} {where}, found {token}")
        return token

    def until(self, close: str, what: str) -> Iterator[None]:
        """Iterates over a list of items between commas: yields once before each item, which the caller then reads. It takes the commas and
        `close` itself. `what` names an item in messages."""
        first = True
        while not self.accept(close):
            if not first:
                self.expect(",", f"or {close} after {what}")
            first = False
            yield

    def name(self, what: str) -> tuple[str, Token]:
        """A plain or quoted name; `what` says what it names."""
        token = self.take()
        if token.kind == "string":
            return self.string_of(token), token
        if token.kind != "name":
            raise self.error(f"expected {what}, found {token}", token)
        return token.text, token

    def string_of(self, token: Token) -> str:
        try:
            return unquote(token.text)
        except ValueError as error:
            raise self.error(f"{error}", token) from None

    def integer(self, what: str, least: int = 0) -> int:
        """An integer of at most `MAX_INTEGER_CHARACTERS` characters, not below `least`."""
        token = self.take()
        if token.kind != "number" or not token.text.removeprefix("-").isdigit():
            raise self.error(f"expected {what}, found {token}", token)
        value = self.number_of(token)
        assert isinstance(value, int)
        if value < least:
            raise self.error(f"expected {what} of at least {least}, found {token}", token)
        return value

    def number_of(self, token: Token) -> int | float:
        """The value of a number's token, which is taken already. `inf` and `nan` are names, which the caller reads; only `-inf` comes
        here."""
        whole = token.text.removeprefix("-").isdigit()
        most = MAX_INTEGER_CHARACTERS if whole else MAX_FLOAT_CHARACTERS
        if len(token.text) > most:
            raise self.error(f"a number of {len(token.text):,} characters; at most {most} are read", token)
        if whole:
            return int(token.text)
        value = float(token.text)
        if abs(value) == float("inf") and "inf" not in token.text:
            raise self.error("too large for a float; write inf if infinity is meant", token)
        return value

    def done(self) -> None:
        """Raises `LineError` unless all of the line is read."""
        if self.next.kind != "end":
            raise self.error(f"expected the end of the line, found {self.next}")

    def error(self, message: str, token: Token | Span | None = None, code: str = SYNTAX, help: str = "") -> LineError:
        """The error to raise for a place of this line: the next token's unless another is given."""
        place = token or self.next
        return line_error(code, message, place if isinstance(place, Span) else place.span, help)
