"""Numbers and strings: from a token's text to its value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby

from lark import Token

from tpucc.diagnostics import Span, printable
from tpucc.language import ast
from tpucc.language.layout import span_of
from tpucc.language.problem import LimitReached, Limits, Problem

ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t"}
PIECE = re.compile(r"(?P<plain>[^\\{}]+)|(?P<brace>\{\{|\}\})|(?P<escape>\\.)|(?P<hole>\{[^}]*\})|[{}]")
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
    with suppress(ValueError):
        return int(text, 0)
    with suppress(ValueError):
        return float(text) if re.search(r"[.eE]", text) else None
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
    pieces = (_part(found, token, hole) for found in PIECE.finditer(raw))
    parts: list[str | ast.Expression] = []
    for is_literal, group in groupby(pieces, key=lambda part: isinstance(part, str)):
        same = list(group)
        parts += ["".join(map(str, same))] if is_literal else same
    return ast.Text(span_of(token), tuple(parts))


def _part(found: re.Match[str], token: Token, hole: Hole) -> str | ast.Expression:
    """The text or the expression that a piece of a string stands for. Raises `Problem`."""
    piece = found[0]
    line, column = token.line or 1, (token.column or 1) + 1  # strings stand on one line, but an escaped newline may not move the columns
    span = Span(line, column + found.start(), line, column + found.end())
    match found.lastgroup:
        case "plain":
            return piece
        case "brace":
            return piece[0]
        case "escape":
            if piece[1] not in ESCAPES:
                mend = "the escapes are \\\" \\' \\\\ \\n and \\t; write \\\\ for a backslash"
                raise Problem("E0105", f"{printable(piece)} isn't an escape", span, "", mend)
            return ESCAPES[piece[1]]
        case "hole":
            if not piece[1:-1].strip():
                raise Problem("E0106", "this hole is empty", span, "expected a name in it", "write {{}} for two braces in a string")
            if "\\" in piece or "{" in piece[1:]:
                raise Problem("E0106", "a hole contains neither backslashes nor braces", span, "", "give the value a name first")
            return hole(piece[1:-1], span)
    if piece == "{":
        raise Problem("E0106", "this hole is never closed", span, "expected a } after it", "write {{ for a brace in a string")
    raise Problem("E0106", "this } closes no hole", span, "", "write }} for a brace in a string")


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


def _cut(token: str) -> str:
    return token if len(token) <= 40 else f"{token[:37]}…"
