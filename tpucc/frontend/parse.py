"""Parsing: from source text to the syntax tree, or to messages about it."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import cast

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lark import PostLex

from tpucc.diagnostics import CompileError, Diagnostic, Label, LimitError, Source, Span
from tpucc.frontend import ast, literals
from tpucc.frontend.build import Builder
from tpucc.frontend.characters import unexpected
from tpucc.frontend.layout import Flat, Layout
from tpucc.frontend.limits import DEFAULT, Limits
from tpucc.frontend.problem import SyntaxProblem, limit, problem
from tpucc.frontend.scan import Text
from tpucc.frontend.source import without_mark
from tpucc.frontend.syntax_errors import explained
from tpucc.ir.collector import collector_paused

BROKEN = "\0"
"""Stands in the text for a statement whose error is already reported."""

RETRIED_BYTES = 2**18
"""Every further error costs another parse; in a source larger than this only the first is reported."""


def parse(source: Source, limits: Limits = DEFAULT) -> ast.Module:
    """The syntax tree of a source.

    Raises `CompileError` with the syntax errors, in source order: after each, parsing goes on with the next statement. Raises
    `LimitError` where the source is too large, too deeply nested, or contains a number that is too long.
    """
    source = without_mark(source)
    try:
        _require_sound(source.text, limits)
        return _module(source, limits)
    except SyntaxProblem as found:
        raise _error((found,), source) from None


def parse_expression(text: str, limits: Limits = DEFAULT) -> ast.Expression:
    """The tree of a lone expression, such as the value of `-D`. Raises `SyntaxProblem`."""
    return cast(ast.Expression, _parsed("expression", text, limits))


def _module(source: Source, limits: Limits) -> ast.Module:
    """Parses again and again, each time without the statements that are known to be wrong, until no error is left."""
    text, found = source.text, list[SyntaxProblem]()
    while True:
        try:
            module = cast(ast.Module, _parsed("module", text, limits))
        except SyntaxProblem as problem_:
            if problem_.limit and not found:
                raise
            found.append(problem_)
            remaining = _without(text, problem_) if _goes_on(found, text, limits) else None
            if remaining is None:
                raise _error(found, source) from None
            text = remaining
        else:
            if found:
                raise _error(found, source)
            return module


def _goes_on(found: list[SyntaxProblem], text: str, limits: Limits) -> bool:
    return found[-1].recoverable and len(found) < limits.errors and len(text) <= RETRIED_BYTES


def _without(source: str, found: SyntaxProblem) -> str | None:
    """The text without the statement of a problem, every line in its place; None when there is nothing to leave out."""
    text = Text(source)
    offset = min(text.offset(found.span.line, found.span.column), len(source))
    start = text.statement_at(offset).start
    line = text.line_of(max(start, 0))
    end = text.statement_end(start, offset)
    statement = source[start:end]
    if BROKEN in statement or not statement.strip():
        return None
    lead = re.compile(r"\s*").match(statement)
    blank = statement[: lead.end()] if lead else ""
    following = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*([ \t]*)[^\s]").match(source, end + 1)
    deeper = following is not None and len(following.group(1)) > len(text.indentation(line + blank.count("\n")))
    return source[:start] + blank + BROKEN + (":" if deeper else "") + "\n" * statement.count("\n", len(blank)) + source[end:]


def _error(found: tuple[SyntaxProblem, ...] | list[SyntaxProblem], source: Source) -> CompileError | LimitError:
    diagnostics = sorted((problem_.diagnostic for problem_ in found), key=lambda d: d.labels[0].span)
    return LimitError(diagnostics, source) if found[0].limit else CompileError(diagnostics, source)


def _require_sound(text: str, limits: Limits) -> None:
    """Checks what the lexer must be able to rely on."""
    if len(text) > limits.source_bytes:
        raise limit("E0612", f"the source has {len(text):,} characters; {limits.source_bytes:,} are the most", Span(1, 1, 1, 2))
    if BROKEN in text:
        offset = text.index(BROKEN)
        raise problem("E0102", "the source contains a NUL character", Text(text).span(offset, offset + 1), "a text file has none")


def _parsed(start: str, text: str, limits: Limits) -> ast.Module | ast.Expression:
    """One parse. Raises `SyntaxProblem` for the first error."""
    body = text.rstrip(" \t\f\r\n") + "\n"
    with collector_paused():
        try:
            return cast(ast.Module | ast.Expression, _parser(start, limits).parse(body))
        except UnexpectedInput as error:
            raise _problem(error, body) from None


def _problem(error: UnexpectedInput, body: str) -> SyntaxProblem:
    text = Text(body)
    if isinstance(error, UnexpectedCharacters):
        return unexpected(text, error.pos_in_stream or 0)
    assert isinstance(error, UnexpectedToken)
    return explained(error.token, frozenset(error.accepts or ()), text)


@lru_cache(maxsize=8)
def _parser(start: str, limits: Limits) -> Lark:
    """The parser of modules or of lone expressions. Building its table takes a tenth of a second."""
    grammar = (resources.files("tpucc.frontend") / "model.lark").read_text("utf-8")
    postlex: PostLex = Layout(limits) if start == "module" else Flat(limits)

    def hole(text: str, span: Span) -> ast.Expression:
        return literals.simple_hole(text, span) or _hole(text, span, limits)

    return Lark(grammar, parser="lalr", lexer="contextual", start=start, postlex=postlex, transformer=Builder(limits, hole))


def _hole(text: str, span: Span, limits: Limits) -> ast.Expression:
    """The expression in a string's hole, parsed behind as many newlines and blanks as stand before it, so that its spans are right."""
    try:
        return parse_expression("\n" * (span.line - 1) + " " * span.column + text, limits)
    except SyntaxProblem as found:
        raise literals.hole_problem(found, span) from None


__all__ = ["Diagnostic", "Label", "parse", "parse_expression"]
