"""Numbers and strings: from a token's text to its value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import groupby

from lark import Token

from tpucc.diagnostics import Span, printable
from tpucc.frontend import ast
from tpucc.frontend.layout import span_of
from tpucc.frontend.problem import LimitReached, Limits, Problem

ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t"}
PIECE = re.compile(r"\\.|\{\{|\}\}|\{|\}|[^\\{}]+")
KEYWORDS = frozenset(("and", "def", "elif", "else", "False", "for", "if", "in", "not", "or", "pass", "return", "True"))
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

Hole = Callable[[str, Span], ast.Expression]
"""Parses the text of a string's hole; the span is the hole's, with its braces."""


def number(token: Token, limits: Limits) -> ast.Number:
    """An integer or a float as Python writes them. Raises `Problem`."""
    span = span_of(token)
    if len(token) > limits.digits:
        raise LimitReached("E0603", f"this number has {len(token):,} characters; {limits.digits} are the most", span)
    value = _value(token)
    if value is None:
        raise Problem("E0104", f"{_cut(token)} is not a number", span, _number_hint(token))
    if not math.isfinite(value) or (isinstance(value, int) and value >= limits.integer):
        raise LimitReached("E0603", "this number is too large", span, "", "integers lie below 2^63, and numbers with a point below 1.8e308")
    return ast.Number(span, value)


def _value(text: str) -> int | float | None:
    """The number that a text is; None when it is none."""
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text) if re.search(r"[.eE]", text) else None
    except ValueError:
        return None


def _number_hint(text: str) -> str:
    if re.fullmatch(r"0[0-9]+", text):
        return f"write it without the zeros in front: {text.lstrip('0') or '0'}"
    if re.fullmatch(r"[0-9]+[A-Za-z_][A-Za-z_0-9]*", text):
        return "a name can't begin with a digit, and a product is written with *"
    return "expected something like 3, 0.5 or 1e-3"


def text(token: Token, hole: Hole) -> ast.Text:
    """A string with its escapes done and its holes parsed. Raises `Problem`."""
    raw = str(token)[1:-1]
    if "\\" not in raw and "{" not in raw and "}" not in raw:
        return ast.Text(span_of(token), (raw,) if raw else ())
    parts: list[str | ast.Expression] = []
    for is_literal, group in groupby(_parts(raw, token, hole), key=lambda part: isinstance(part, str)):
        pieces = list(group)
        parts += ["".join(map(str, pieces))] if is_literal else pieces
    return ast.Text(span_of(token), tuple(parts))


def _parts(raw: str, token: Token, hole: Hole) -> Iterator[str | ast.Expression]:
    position = 0
    while position < len(raw):
        found = PIECE.match(raw, position)
        assert found is not None  # the pattern covers every character, and a backslash is never the last
        piece, end = found.group(), found.end()
        if piece == "{":
            end = _hole_end(raw, position, token)
            yield hole(raw[position + 1 : end - 1], _inside(token, position, end))
        else:
            yield _literal(piece, _inside(token, position, end))
        position = end


def _literal(piece: str, span: Span) -> str:
    if piece in ("{{", "}}"):
        return piece[0]
    if piece == "}":
        raise Problem("E0106", "this } closes no hole", span, "", "write }} for a brace in a string")
    if piece[0] != "\\":
        return piece
    if piece[1] not in ESCAPES:
        raise Problem(
            "E0105",
            f"{printable(piece)} isn't an escape",
            span,
            "",
            "the escapes are \\\" \\' \\\\ \\n and \\t; write \\\\ for a backslash",
        )
    return ESCAPES[piece[1]]


def _hole_end(raw: str, start: int, token: Token) -> int:
    """The index after the brace that closes the hole at `start`."""
    end = raw.find("}", start) + 1
    if not end:
        span = _inside(token, start, start + 1)
        raise Problem("E0106", "this hole is never closed", span, "expected a } after it", "write {{ for a brace in a string")
    inner, span = raw[start + 1 : end - 1], _inside(token, start, end)
    if not inner.strip():
        raise Problem("E0106", "this hole is empty", span, "expected a name in it", "write {{}} for two braces in a string")
    if "\\" in inner or "{" in inner:
        raise Problem("E0106", "a hole contains neither backslashes nor braces", span, "", "give the value a name first")
    return end


def simple_hole(inner: str, span: Span) -> ast.Name | None:
    """The hole when it holds a lone name, as nearly all do."""
    name = inner.strip()
    if not IDENTIFIER.fullmatch(name) or name in KEYWORDS:
        return None
    column = span.column + 1 + len(inner) - len(inner.lstrip())
    return ast.Name(Span(span.line, column, span.line, column + len(name)), name)


def hole_problem(found: Problem, span: Span) -> Problem:
    """The error of a hole that isn't an expression, in terms of the string around it."""
    if found.diagnostic.code == "E0106":
        return found
    mend = "a hole holds one static value, such as {name} or {i + 1}; formats after a colon don't exist"
    return Problem("E0106", "this hole isn't an expression", span, "", mend)


def _inside(token: Token, start: int, end: int) -> Span:
    """The span of a piece of a string's inside; strings stand on one line, but an escaped newline may not move the columns."""
    line, column = token.line or 1, (token.column or 1) + 1
    return Span(line, column + start, line, column + end)


def _cut(token: str) -> str:
    return token if len(token) <= 40 else f"{token[:37]}…"
