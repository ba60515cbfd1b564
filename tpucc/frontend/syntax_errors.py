"""From what the parser or the lexer says of an error to what a student can use.

Each rule looks at one kind of mistake and answers with its message, or with None; the first that answers wins, and the last always
does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lark import Token

from tpucc.diagnostics import Span, did_you_mean, listed, printable
from tpucc.frontend import words
from tpucc.frontend.layout import span_of, unclosed
from tpucc.frontend.problem import Problem
from tpucc.frontend.scan import Statement, Text

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
    def starts_statement(self) -> bool:
        return not self.statement.pieces

    @property
    def starts_line(self) -> bool:
        line = self.text.line_of(self.offset)
        return not self.text.text[self.text.lines[line - 1] : self.offset].strip()

    @property
    def at_top(self) -> bool:
        """The statement stands at the left edge, where no block is open."""
        return not self.text.indentation(self.text.line_of(self.statement.start))

    @property
    def adjacent(self) -> bool:
        """Nothing stands between the token and the piece before it."""
        pieces = self.statement.pieces
        return bool(pieces) and pieces[-1].end == self.offset


def explained(token: Token, accepts: frozenset[str], text: Text) -> Problem:
    """The message for an unexpected token."""
    offset = min(token.start_pos if token.start_pos is not None else len(text.text), len(text.text))
    case = Case(token, accepts, text, offset, text.statement_at(offset))
    answers = (rule(case) for rule in RULES)
    return next((answer for answer in answers if answer is not None), None) or _general(case)


def _triple_quotes(case: Case) -> Problem | None:
    """Three quotation marks are an empty string and the beginning of another."""
    pieces = case.statement.pieces
    if not case.adjacent or pieces[-1].text not in ('""', "''") or case.token[:1] not in ('"', "'"):
        return None
    span = case.text.span(pieces[-1].start, case.offset + 1)
    return Problem("E0103", "there are no strings in triple quotes", span, "", "a comment begins with #")


def _unclosed(case: Case) -> Problem | None:
    """A bracket is open, and what comes is the next statement, or the colon of a header."""
    if not case.statement.brackets:
        return None
    edge = len(case.text.indentation(case.text.line_of(case.statement.start)))
    anew = case.starts_line and len(case.text.indentation(case.text.line_of(case.offset))) <= edge
    header = case.token == ":" and case.statement.first in HEADERS and "COLON" not in case.accepts
    typed = case.statement.brackets[-1].text == "(" and case.statement.first == "def"
    ended = case.token.type in ("$END", "_NEWLINE")
    if not (anew or ended or (header and not typed)):
        return None
    opener = case.statement.brackets[-1]
    return unclosed(opener.text, case.text.span(opener.start, opener.end))


def _number(case: Case) -> Problem | None:
    """`1.2.3`, `3x`: two things that only a missing blank joins."""
    pieces = case.statement.pieces
    if not (case.adjacent and case.token.type in ("NUMBER", "NAME") and pieces[-1].kind == "word" and pieces[-1].text[0].isdigit()):
        return None
    start = next(p.start for p in reversed(pieces) if p.kind != "word" or p.text[0].isdigit())
    end = case.offset + len(case.token)
    message = f"{case.text.text[start:end]} is not a number"
    return Problem("E0104", message, case.text.span(start, end), "expected something like 3, 0.5 or 1e-3")


def _python_only(case: Case) -> Problem | None:
    """A word or an operator of Python that the language does without."""
    pieces = case.statement.pieces
    if case.token == "*" and case.adjacent and case.statement.previous == "*":
        span = case.text.span(case.offset - 1, case.offset + 1)
        return Problem("E0114", "`**` is not in the language", span, "", "write a power as a product: x * x")
    if case.token.type == "IF" and case.statement.previous == "else":
        return Problem("E0114", "`else if` is written `elif`", case.text.span(pieces[-1].start, case.offset + 2))
    word = case.token if case.token in words.PYTHON_ONLY and case.token.type == "NAME" else None
    for piece in (pieces[0], pieces[-1]) if pieces else ():
        if word is None and piece.text in words.PYTHON_ONLY and case.token != "=":
            return _foreign(piece.text, case.text.span(piece.start, piece.end))
    return _foreign(str(word), case.span) if word is not None else None


def _string_prefix(case: Case) -> Problem | None:
    """`f"…"`: a string with a letter of Python before it."""
    if not case.adjacent or case.token[:1] not in ('"', "'") or case.statement.previous.lower() not in words.STRING_PREFIXES:
        return None
    prefix = case.statement.pieces[-1]
    mend = 'every string may have holes: "{name}.w"' if prefix.text in "fF" else "a string begins with its quotation mark"
    return Problem("E0114", f"a string has no {prefix.text} before it", case.text.span(prefix.start, prefix.end), "", mend)


def _inside_brackets(case: Case) -> Problem | None:
    """A comprehension, or the dots that stand for all axes."""
    if not case.statement.brackets:
        return None
    if case.token.type == "FOR":
        mend = "build the list in a loop: values = values + [y]"
        return Problem("E0114", "`for` inside brackets is not in the language", case.span, "", mend)
    if case.token == "." and case.text.text.startswith("...", case.offset):
        span = case.text.span(case.offset, case.offset + 3)
        return Problem("E0114", "`...` is not in the language", span, "", "write a colon for each axis: x[:, :, 0]")
    return None


def _other_languages(case: Case) -> Problem | None:
    """`:=`, a decorator, and a comment as C has it."""
    span = case.text.span(case.offset, case.offset + len(case.token))
    if case.token == ":" and case.text.text.startswith(":=", case.offset):
        span = case.text.span(case.offset, case.offset + 2)
        return Problem("E0114", "`:=` is not in the language", span, "", "give the name its value on a line of its own: n = 3")
    if case.token == "@" and case.starts_statement:
        return Problem("E0114", "a line can't begin with `@`: there are no decorators", span, "", "a def may call another one")
    if case.token == "//" and case.starts_statement:
        return Problem("E0116", "`//` divides; it begins no comment", span, "", "a comment begins with #")
    return None


def _directive_assigned(case: Case) -> Problem | None:
    """`weights = "…"`: a directive written as an assignment."""
    word = case.statement.first
    if case.token != "=" or len(case.statement.pieces) != 1 or not case.at_top or word not in words.DIRECTIVES:
        return None
    return Problem("E0113", f"{word} takes no =", case.span, "", words.DIRECTIVES[word])


def _foreign(word: str, span: Span) -> Problem:
    return Problem("E0114", f"`{word}` is not in the language", span, "", words.PYTHON_ONLY[word])


def _else_alone(case: Case) -> Problem | None:
    if case.token.type not in ("ELSE", "ELIF") or not case.starts_statement:
        return None
    return Problem("E0115", f"this {case.token} belongs to no if", case.span, "", "align it with its if; nothing may stand between them")


def _misplaced(case: Case) -> Problem | None:
    """A top-level form stands in a block, or a statement at the top level."""
    if case.at_top and case.starts_statement:
        return _not_top_level(case)
    word = case.statement.first or str(case.token)
    if case.at_top or word not in words.TOP_LEVEL or len(case.statement.pieces) > 1:
        return None
    start = case.statement.pieces[0].start if case.statement.pieces else case.offset
    span = case.text.span(start, start + len(word))
    return _in_block(word, span)


def _in_block(word: str, span: Span) -> Problem:
    return Problem("E0115", f"{word} can't stand inside a block", span, "", f"move {word} to the left edge, outside of every def and model")


def _not_top_level(case: Case) -> Problem | None:
    token = case.token
    near = did_you_mean(words.ELSEWHERE.get(token, token), words.TOP_LEVEL) if token.type == "NAME" else ""
    if token.type not in ("NAME", "FOR", "IF", "RETURN", "WEIGHT", "PASS"):
        return None
    assigned = case.text.text[case.offset + len(token) :].lstrip(" \t").startswith("=")
    mend = f"for a static value write: param {token} = …" if assigned else "indent it under the def or model that it belongs to"
    label = f"only {listed(words.TOP_LEVEL)} can"
    return Problem("E0115", f"{words.found(token)} can't begin a line at the top level", case.span, label, near or mend)


def _train(case: Case) -> Problem | None:
    """`train` with a name, without inputs, or inside a block."""
    if case.statement.first != "train":
        return None
    if not case.at_top and case.token == ":" and [piece.text for piece in case.statement.brackets] == ["("]:
        start = case.statement.pieces[0].start
        return _in_block("train", case.text.span(start, start + len("train")))
    if case.accepts != {"LPAR"}:
        return None
    if case.token.type == "NAME":
        return Problem("E0921", "train has no name", case.span, "", TRAIN)
    return Problem("E0116", f"expected `(` and the inputs of train, found {words.found(case.token)}", case.span, "", TRAIN)


def _equals(case: Case) -> Problem | None:
    if case.token != "=":
        return None
    if case.statement.first in ("if", "elif", "return") and not case.statement.brackets:
        return Problem("E0113", "= assigns a value, which can't be done here", case.span, "", "to compare, write ==")
    if "COMPARE" not in case.accepts:
        return None
    if any(piece.text == "=" for piece in case.statement.pieces):
        return Problem("E0113", "a second = in one statement", case.span, "", "to compare, write ==; assign one value a line")
    return Problem("E0113", "= can't stand here", case.span, "", "to compare, write ==; a keyword argument has a plain name before its =")


def _missing_colon(case: Case) -> Problem | None:
    if "COLON" not in case.accepts or case.token.type != "_NEWLINE":
        return None
    if case.statement.first in (*HEADERS, "else"):
        return Problem("E0112", f"the line of this {case.statement.first} must end with a colon", case.span, "expected `:`")
    return None


def _types(case: Case) -> Problem | None:
    """Types that are missing, or stand where there are none."""
    first, previous = case.statement.first, case.statement.previous
    if first == "def" and case.token == "->":
        mend = "its callers see what it returns; only a model may have -> types"
        return Problem("E0116", "a def doesn't declare its results", case.span, "", mend)
    if first == "def" and case.token == ":" and case.statement.brackets:
        mend = "any tensor or static value may be passed: def f(x, units=3):"
        return Problem("E0116", "the arguments of a def have no types", case.span, "", mend)
    if first in ("model", "train", "weight") and case.accepts == {"COLON"} and previous not in (")", "]"):
        mend = f"{'an input' if first in HEADERS else 'a weight'} has a type: {previous}: f32[8, 256]"
        return Problem("E0116", f"{previous} has no type", case.span, "expected `:` and a type", mend)
    if case.accepts == {"LSQB"} and previous == "in":
        return Problem("E0116", "this range has no brackets", case.span, "expected `[`", "write in [0.0, 1.0]")
    if case.accepts == {"LSQB"} and ":" in [piece.text for piece in case.statement.pieces]:
        mend = f"write {previous}[8, 256], or {previous}[] for a scalar"
        return Problem("E0116", "this type has no sizes", case.span, "expected `[`", mend)
    return None


def _missing_value(case: Case) -> Problem | None:
    """An operator or a comma without what should follow."""
    previous = case.statement.previous
    if not case.accepts >= {"NUMBER", "STRING"} or not previous or previous in "([{:,":
        return None
    mend = words.DIRECTIVES.get(previous, "") if len(case.statement.pieces) == 1 else ""
    return Problem("E0117", f"nothing stands after `{previous}`", case.span, f"expected a value, found {words.found(case.token)}", mend)


def _general(case: Case) -> Problem:
    first = case.statement.first or str(case.token)
    known = words.STATEMENTS if not case.at_top else words.TOP_LEVEL
    misspelled = len(case.statement.pieces) == 1 and case.token.type in ("NAME", "NUMBER", "STRING") and first not in known
    mend = did_you_mean(first, known) if misspelled else ""
    if "FIXED" in case.accepts and case.token.type == "NAME":
        mend = did_you_mean(str(case.token), ["fixed"])
    elif case.token == "=" and case.statement.previous == "fixed":
        mend = 'fixed stands at the end: weight w: f32[3] = "w" fixed'
    elif case.at_top and len(case.statement.pieces) > 1:
        mend = words.DIRECTIVES.get(first, "")
    expected, found = words.expected(case.accepts), words.found(case.token)
    return Problem("E0116", f"expected {expected}, found {found}", case.span, "", mend)


Rule = Callable[[Case], Problem | None]
RULES: tuple[Rule, ...] = (
    _triple_quotes,
    _other_languages,
    _directive_assigned,
    _train,
    _unclosed,
    _number,
    _string_prefix,
    _python_only,
    _inside_brackets,
    _else_alone,
    _misplaced,
    _missing_colon,
    _types,
    _equals,
    _missing_value,
)

INSTEAD: Mapping[str, str] = {
    "!": "write not, or != for different",
    "&": "write and",
    "|": "write or",
    "^": "write a power as a product: x * x",
    "~": "write not",
    ";": "write one statement a line",
    "{": "lists stand in [ ], and a block is indented under a colon",
    "}": "lists stand in [ ], and a block is indented under a colon",
    "?": "a choice is written value if condition else other; every size in a type is a number",
    "$": "a param is used by its plain name; -D changes it",
    "\\": "inside brackets, lines continue by themselves",
    ".": "numbers are written like 0.5",
    "<": "compare with <, <=, > or >=",
    "×": "write *",
    "÷": "write // or /",
    "−": "write the plain minus sign -",
    "–": "write the plain minus sign -",
    "—": "write the plain minus sign -",
    "→": "write ->",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb`\u00b4"
BLANKS = ("Zs", "Cf", "Cc")


def unexpected(text: Text, offset: int) -> Problem:
    """The message for a character where no token begins."""
    character = text.text[offset]
    span = text.span(offset, offset + 1)
    if character in "\"'":
        return _unterminated(text, offset)
    if character in QUOTES:
        return Problem(
            "E0102", f"{character} isn't a quotation mark of the language", span, "", 'strings stand between plain quotes: "fc1.w"'
        )
    if character in INSTEAD:
        return Problem("E0102", f"`{character}` means nothing here", span, "", INSTEAD[character])
    name = unicodedata.name(character, "").lower() or f"character number {ord(character)}"
    if unicodedata.category(character) in BLANKS:
        return Problem("E0102", f"an invisible character: {printable(name)}", span, "delete it, or type a plain space")
    if character.isalpha():
        return Problem(
            "E0102", f"{character} ({name}) can't be part of a name", span, "", "names are made of the letters a–z and A–Z, digits and _"
        )
    return Problem("E0102", f"`{printable(character)}` ({name}) means nothing in the language", span)


def _unterminated(text: Text, offset: int) -> Problem:
    quote = text.text[offset]
    end = text.text.find("\n", offset)
    end = len(text.text) if end < 0 else end
    if text.text.startswith(quote * 3, offset):
        return Problem(
            "E0103", "strings stand on one line", text.span(offset, end), "", "there are no triple quotes; comments begin with #"
        )
    return Problem("E0103", "this string doesn't end", text.span(offset, end), f"expected a closing {quote} on this line")
