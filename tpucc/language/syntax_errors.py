"""From what the parser or the lexer says of an error to what a student can use.

Each rule looks at one kind of mistake and yields its message, the likeliest mistake first. The first message of the first rule that has one
wins, and the last rule always has one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from lark import Token

from tpucc.diagnostics import Span, did_you_mean, listed, printable
from tpucc.language import words
from tpucc.language.layout import span_of, unclosed
from tpucc.language.problem import Problem
from tpucc.language.scan import Statement, Text

HEADERS = ("if", "elif", "for", "def", "model", "train")
"""The words that begin a line that ends with a colon, and have more in it."""
TRAIN = "it is written train(image: f32[8, 4], label: i32[8]):"


@dataclass(frozen=True)
class Case:
    """An unexpected token, what the parser would have taken there, and the statement before it."""

    token: Token
    accepts: frozenset[str]
    text: Text
    offset: int
    statement: Statement

    @property
    def span(self) -> Span:
        """The token's place; a newline is one column after the line's last character."""
        if self.token.type in ("_NEWLINE", "$END", "_DEDENT", "_INDENT"):
            line, column = self.token.line or 1, self.token.column or 1
            return Span(line, column, line, column + 1)
        return span_of(self.token)

    @property
    def starts_line(self) -> bool:
        line = self.text.line_of(self.offset)
        return not self.text.text[self.text.lines[line - 1] : self.offset].strip()

    @property
    def at_top(self) -> bool:
        """The statement stands at the left edge, where no block is open."""
        return not self.text.indentation(self.text.line_of(self.statement.start))

    @property
    def last(self) -> re.Match[str] | None:
        """The piece that ends where the token begins, with nothing between them."""
        pieces = self.statement.pieces
        return pieces[-1] if pieces and pieces[-1].end() == self.offset else None

    def next_few(self, count: int) -> Span:
        """The place of the token's first characters."""
        return self.text.span(self.offset, self.offset + count)

    def begins(self, text: str) -> bool:
        return self.text.text.startswith(text, self.offset)


def explained(token: Token, accepts: frozenset[str], text: Text) -> Problem:
    """The message for an unexpected token."""
    offset = min(token.start_pos if token.start_pos is not None else len(text.text), len(text.text))
    case = Case(token, accepts, text, offset, text.statement_at(offset))
    return next(chain.from_iterable(rule(case) for rule in RULES))


def _other_languages(case: Case) -> Iterator[Problem]:
    """Three quotation marks, which are an empty string and the beginning of another; `:=`, a decorator, and a comment as C has it."""
    token, at_start = case.token, not case.statement.pieces
    if case.last and case.last[0] in ('""', "''") and token[:1] in ('"', "'"):
        span = case.text.span(case.last.start(), case.offset + 1)
        yield Problem("E0103", "there are no strings in triple quotes", span, "", "a comment begins with #")
    if token == ":" and case.begins(":="):
        mend = "give the name its value on a line of its own: n = 3"
        yield Problem("E0114", "`:=` is not in the language", case.next_few(2), "", mend)
    if token == "@" and at_start:
        yield Problem("E0114", "a line can't begin with `@`: there are no decorators", case.span, "", "a def may call another one")
    if token == "//" and at_start:
        yield Problem("E0116", "`//` divides; it begins no comment", case.span, "", "a comment begins with #")


def _directives(case: Case) -> Iterator[Problem]:
    """`weights = "…"`: a directive written as an assignment; `train` with a name, without inputs, or inside a block."""
    word, pieces = case.statement.first, case.statement.pieces
    if case.token == "=" and len(pieces) == 1 and case.at_top and (mend := words.advice("directives", word)):
        yield Problem("E0113", f"{word} takes no =", case.span, "", mend)
    if word != "train":
        return
    if not case.at_top and case.token == ":" and [piece[0] for piece in case.statement.brackets] == ["("]:
        yield _in_block(case, word)
    if case.accepts == {"LPAR"} and case.token.type == "NAME":
        yield Problem("E0921", "train has no name", case.span, "", TRAIN)
    if case.accepts == {"LPAR"}:
        yield Problem("E0116", f"expected `(` and the inputs of train, found {words.found(case.token)}", case.span, "", TRAIN)


def _unclosed(case: Case) -> Iterator[Problem]:
    """A bracket is open, and what comes is the next statement, or the colon of a header."""
    if not case.statement.brackets:
        return
    opener = case.statement.brackets[-1]
    edge = case.text.indentation(case.text.line_of(case.statement.start))
    anew = case.starts_line and len(case.text.indentation(case.text.line_of(case.offset))) <= len(edge)
    header = case.token == ":" and case.statement.first in HEADERS and "COLON" not in case.accepts
    typed = opener[0] == "(" and case.statement.first == "def"
    if anew or case.token.type in ("$END", "_NEWLINE") or (header and not typed):
        yield unclosed(opener[0], case.text.span(*opener.span()))


def _literals(case: Case) -> Iterator[Problem]:
    """`1.2.3`, `3x`: two things that only a missing blank joins; `f"…"`: a string with a letter of Python before it."""
    token, last = case.token, case.last
    if last is None:
        return
    if token.type in ("NUMBER", "NAME") and last.lastgroup == "word" and last[0][0].isdigit():
        start = next(p.start() for p in reversed(case.statement.pieces) if p.lastgroup != "word" or p[0][0].isdigit())
        end = case.offset + len(token)
        message = f"{case.text.text[start:end]} is not a number"
        yield Problem("E0104", message, case.text.span(start, end), "expected something like 3, 0.5 or 1e-3")
    if token[:1] in ('"', "'") and last[0].lower() in words.STRING_PREFIXES:
        mend = 'every string may have holes: "{name}.w"' if last[0] in "fF" else "a string begins with its quotation mark"
        yield Problem("E0114", f"a string has no {last[0]} before it", case.text.span(*last.span()), "", mend)


def _python_only(case: Case) -> Iterator[Problem]:
    """A word or an operator of Python that the language does without."""
    token, pieces = case.token, case.statement.pieces
    if token == "*" and case.last and case.last[0] == "*":
        span = case.text.span(case.offset - 1, case.offset + 1)
        yield Problem("E0114", "`**` is not in the language", span, "", "write a power as a product: x * x")
    if token.type == "IF" and case.statement.previous == "else":
        yield Problem("E0114", "`else if` is written `elif`", case.text.span(pieces[-1].start(), case.offset + 2))
    if token.type == "NAME" and words.advice("words", token):
        yield _foreign(str(token), case.span)
    for piece in (pieces[0], pieces[-1]) if pieces and token != "=" else ():
        if words.advice("words", piece[0]):
            yield _foreign(piece[0], case.text.span(*piece.span()))


def _foreign(word: str, span: Span) -> Problem:
    return Problem("E0114", f"`{word}` is not in the language", span, "", words.advice("words", word))


def _inside_brackets(case: Case) -> Iterator[Problem]:
    """A comprehension, or the dots that stand for all axes."""
    if case.statement.brackets and case.token.type == "FOR":
        mend = "build the list in a loop: values = values + [y]"
        yield Problem("E0114", "`for` inside brackets is not in the language", case.span, "", mend)
    if case.statement.brackets and case.token == "." and case.begins("..."):
        yield Problem("E0114", "`...` is not in the language", case.next_few(3), "", "write a colon for each axis: x[:, :, 0]")


def _misplaced(case: Case) -> Iterator[Problem]:
    """An `else` without its `if`; a top-level form in a block, or a statement at the top level."""
    token, at_start = case.token, not case.statement.pieces
    if token.type in ("ELSE", "ELIF") and at_start:
        mend = "align it with its if; nothing may stand between them"
        yield Problem("E0115", f"this {token} belongs to no if", case.span, "", mend)
    if case.at_top and at_start and token.type in ("NAME", "FOR", "IF", "RETURN", "WEIGHT", "PASS"):
        near = did_you_mean(words.advice("definitions", token) or token, words.TOP_LEVEL) if token.type == "NAME" else ""
        assigned = case.text.text[case.offset + len(token) :].lstrip(" \t").startswith("=")
        mend = f"for a static value write: param {token} = …" if assigned else "indent it under the def or model that it belongs to"
        label = f"only {listed(words.TOP_LEVEL)} can"
        yield Problem("E0115", f"{words.found(token)} can't begin a line at the top level", case.span, label, near or mend)
    word = case.statement.first or str(token)
    if not case.at_top and word in words.TOP_LEVEL and len(case.statement.pieces) <= 1:
        yield _in_block(case, word)


def _in_block(case: Case, word: str) -> Problem:
    """A top-level form that begins with `word` stands inside a block."""
    start = case.statement.pieces[0].start() if case.statement.pieces else case.offset
    mend = f"move {word} to the left edge, outside of every def and model"
    return Problem("E0115", f"{word} can't stand inside a block", case.text.span(start, start + len(word)), "", mend)


def _missing_colon(case: Case) -> Iterator[Problem]:
    if "COLON" in case.accepts and case.token.type == "_NEWLINE" and case.statement.first in (*HEADERS, "else"):
        yield Problem("E0112", f"the line of this {case.statement.first} must end with a colon", case.span, "expected `:`")


def _types(case: Case) -> Iterator[Problem]:
    """Types that are missing, or stand where there are none."""
    first, previous, accepts = case.statement.first, case.statement.previous, case.accepts
    if first == "def" and case.token == "->":
        mend = "its callers see what it returns; only a model may have -> types"
        yield Problem("E0116", "a def doesn't declare its results", case.span, "", mend)
    if first == "def" and case.token == ":" and case.statement.brackets:
        mend = "any tensor or static value may be passed: def f(x, units=3):"
        yield Problem("E0116", "the arguments of a def have no types", case.span, "", mend)
    if first in ("model", "train", "weight") and accepts == {"COLON"} and previous not in (")", "]"):
        mend = f"{'an input' if first in HEADERS else 'a weight'} has a type: {previous}: f32[8, 256]"
        yield Problem("E0116", f"{previous} has no type", case.span, "expected `:` and a type", mend)
    if accepts == {"LSQB"} and previous == "in":
        yield Problem("E0116", "this range has no brackets", case.span, "expected `[`", "write in [0.0, 1.0]")
    if accepts == {"LSQB"} and ":" in [piece[0] for piece in case.statement.pieces]:
        mend = f"write {previous}[8, 256], or {previous}[] for a scalar"
        yield Problem("E0116", "this type has no sizes", case.span, "expected `[`", mend)


def _equals(case: Case) -> Iterator[Problem]:
    if case.token != "=":
        return
    if case.statement.first in ("if", "elif", "return") and not case.statement.brackets:
        yield Problem("E0113", "= assigns a value, which can't be done here", case.span, "", "to compare, write ==")
    if "COMPARE" in case.accepts and any(piece[0] == "=" for piece in case.statement.pieces):
        yield Problem("E0113", "a second = in one statement", case.span, "", "to compare, write ==; assign one value a line")
    if "COMPARE" in case.accepts:
        mend = "to compare, write ==; a keyword argument has a plain name before its ="
        yield Problem("E0113", "= can't stand here", case.span, "", mend)


def _missing_value(case: Case) -> Iterator[Problem]:
    """An operator or a comma without what should follow."""
    previous = case.statement.previous
    if case.accepts >= {"NUMBER", "STRING"} and previous and previous not in "([{:,":
        mend = words.advice("directives", previous) if len(case.statement.pieces) == 1 else ""
        label = f"expected a value, found {words.found(case.token)}"
        yield Problem("E0117", f"nothing stands after `{previous}`", case.span, label, mend)


def _anything(case: Case) -> Iterator[Problem]:
    first = case.statement.first or str(case.token)
    known = words.STATEMENTS if not case.at_top else words.TOP_LEVEL
    misspelled = len(case.statement.pieces) == 1 and case.token.type in ("NAME", "NUMBER", "STRING") and first not in known
    mend = did_you_mean(first, known) if misspelled else ""
    if "FIXED" in case.accepts and case.token.type == "NAME":
        mend = did_you_mean(str(case.token), ["fixed"])
    elif case.token == "=" and case.statement.previous == "fixed":
        mend = 'fixed stands at the end: weight w: f32[3] = "w" fixed'
    elif case.at_top and len(case.statement.pieces) > 1:
        mend = words.advice("directives", first)
    yield Problem("E0116", f"expected {words.expected(case.accepts)}, found {words.found(case.token)}", case.span, "", mend)


RULES: tuple[Callable[[Case], Iterator[Problem]], ...] = (
    _other_languages,
    _directives,
    _unclosed,
    _literals,
    _python_only,
    _inside_brackets,
    _misplaced,
    _missing_colon,
    _types,
    _equals,
    _missing_value,
    _anything,
)

QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb`\u00b4"
BLANKS = ("Zs", "Cf", "Cc")


def unexpected(text: Text, offset: int) -> Problem:
    """The message for a character where no token begins."""
    character = text.text[offset]
    span = text.span(offset, offset + 1)
    name = unicodedata.name(character, "").lower() or f"character number {ord(character)}"
    if character in "\"'":
        return _unterminated(text, offset)
    if character in QUOTES:
        message = f"{character} isn't a quotation mark of the language"
        return Problem("E0102", message, span, "", 'strings stand between plain quotes: "fc1.w"')
    if mend := words.advice("characters", character):
        return Problem("E0102", f"`{character}` means nothing here", span, "", mend)
    if unicodedata.category(character) in BLANKS:
        return Problem("E0102", f"an invisible character: {printable(name)}", span, "delete it, or type a plain space")
    if character.isalpha():
        mend = "names are made of the letters a–z and A–Z, digits and _"
        return Problem("E0102", f"{character} ({name}) can't be part of a name", span, "", mend)
    return Problem("E0102", f"`{printable(character)}` ({name}) means nothing in the language", span)


def _unterminated(text: Text, offset: int) -> Problem:
    quote, line = text.text[offset], text.text[offset:].partition("\n")[0]
    span = text.span(offset, offset + len(line))
    if line.startswith(quote * 3):
        return Problem("E0103", "strings stand on one line", span, "", "there are no triple quotes; comments begin with #")
    return Problem("E0103", "this string doesn't end", span, f"expected a closing {quote} on this line")
