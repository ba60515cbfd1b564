"""Parsing: from source text to the syntax tree, or to messages about it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tpucc.collector import collector_paused
from tpucc.diagnostics import CompileError, Source, Span
from tpucc.language import ast, literals
from tpucc.language.build import Builder
from tpucc.language.layout import Layout
from tpucc.language.problem import DEFAULT, LimitReached, Limits, Problem, Reports
from tpucc.language.scan import Text
from tpucc.language.syntax_errors import explained, unexpected

GRAMMAR = Path(__file__).with_name("model.lark")
BROKEN = "\0"
"""Stands in the text for a statement whose error is already reported."""

RETRIED_BYTES = 2**18
"""Every further error costs another parse; in a source larger than this only the first is reported."""


def parse(source: Source, limits: Limits = DEFAULT) -> ast.Module:
    """The syntax tree of a source; a byte-order mark at its beginning counts as no column.

    Raises `CompileError` with the syntax errors, in source order: after each, parsing goes on with the next statement. Raises
    `LimitError` where the source is too large, too deeply nested, or contains a number that is too long.
    """
    source = replace(source, text=source.text.removeprefix("\ufeff"))
    text, reports = source.text, Reports(source, limits)
    try:
        _require_sound(source, limits)
        while True:
            try:
                module = _parsed("module", text, limits)
            except Problem as problem:
                reports.add(problem)
                text = "" if problem.final or len(text) > RETRIED_BYTES else _without(text, problem)
                if not text:
                    reports.raise_any()
            else:
                reports.raise_any()
                return cast(ast.Module, module)
    except LimitReached as reached:
        raise reports.limit_error(reached) from None


def parse_expression(text: str, limits: Limits = DEFAULT) -> ast.Expression:
    """The tree of a lone expression, such as the value of `-D`. Raises `Problem`."""
    return cast(ast.Expression, _parsed("expression", text, limits))


def _without(source: str, found: Problem) -> str:
    """The text without the statement of a problem, every line in its place; empty when there is nothing to leave out."""
    text = Text(source)
    offset = min(text.offset(found.span.line, found.span.column), len(source))
    start = text.statement_at(offset).start
    line = text.line_of(max(start, 0))
    end = text.statement_end(start, offset)
    statement = source[start:end]
    if BROKEN in statement or not statement.strip():
        return ""
    lead = re.compile(r"\s*").match(statement)
    blank = statement[: lead.end()] if lead else ""
    following = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*([ \t]*)[^\s]").match(source, end + 1)
    deeper = following is not None and len(following.group(1)) > len(text.indentation(line + blank.count("\n")))
    return source[:start] + blank + BROKEN + (":" if deeper else "") + "\n" * statement.count("\n", len(blank)) + source[end:]


def _require_sound(source: Source, limits: Limits) -> None:
    """Checks what the lexer must be able to rely on. Raises `LimitReached` and `CompileError`."""
    text = source.text
    if len(text) > limits.source_bytes:
        raise LimitReached("E0612", f"the source has {len(text):,} characters; {limits.source_bytes:,} are the most", Span(1, 1, 1, 2))
    if BROKEN in text:
        offset = text.index(BROKEN)
        found = Problem("E0102", "the source contains a NUL character", Text(text).span(offset, offset + 1), "a text file has none")
        raise CompileError(found.diagnostic, source)


def _parsed(start: str, text: str, limits: Limits) -> ast.Module | ast.Expression:
    """One parse. Raises `Problem` for the first error."""
    body = text.rstrip(" \t\f\r\n") + "\n"
    with collector_paused():
        try:
            return cast(ast.Module | ast.Expression, _parser(start, limits).parse(body))
        except UnexpectedInput as error:
            raise _problem(error, body) from None


def _problem(error: UnexpectedInput, body: str) -> Problem:
    text = Text(body)
    if isinstance(error, UnexpectedCharacters):
        return unexpected(text, error.pos_in_stream or 0)
    assert isinstance(error, UnexpectedToken)
    return explained(error.token, frozenset(error.accepts or ()), text)


@lru_cache(maxsize=8)
def _parser(start: str, limits: Limits) -> Lark:
    """The parser of modules or of lone expressions. Lark keeps its table in a file beside the grammar, where it can write one."""

    def hole(text: str, span: Span) -> ast.Expression:
        return literals.simple_hole(text, span) or _hole(text, span, limits)

    return Lark(
        GRAMMAR.read_text("utf-8"),
        parser="lalr",
        start=start,
        cache=str(GRAMMAR.with_name(f"{start}.table")),
        postlex=Layout(limits, flat=start != "module"),
        transformer=Builder(limits, hole),
    )


def _hole(text: str, span: Span, limits: Limits) -> ast.Expression:
    """The expression in a string's hole, parsed behind as many newlines and blanks as stand before it, so that its spans are right."""
    try:
        return parse_expression("\n" * (span.line - 1) + " " * span.column + text, limits)
    except Problem as found:
        raise literals.hole_problem(found, span) from None
