"""How a syntax error travels from where it is found to `parse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tpucc.diagnostics import Diagnostic, Label, Span


class Positioned(Protocol):
    """A token of lark, as far as places go."""

    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None


@dataclass(eq=False)
class SyntaxProblem(Exception):
    """A syntax error. `recoverable` says that parsing may go on after the statement in which it stands; `limit`, that the source isn't
    wrong but too large."""

    diagnostic: Diagnostic
    recoverable: bool = True
    limit: bool = False

    @property
    def span(self) -> Span:
        return self.diagnostic.labels[0].span


def problem(code: str, message: str, span: Span, label: str = "", *help_: str, notes: tuple[Label, ...] = ()) -> SyntaxProblem:
    """A syntax error at `span`; `label` stands beside the carets."""
    return SyntaxProblem(Diagnostic(code, message, (Label(span, label), *notes), tuple(text for text in help_ if text)))


def limit(code: str, message: str, span: Span, *help_: str) -> SyntaxProblem:
    """A limit that the source crosses at `span`."""
    return SyntaxProblem(Diagnostic(code, message, (Label(span),), help_), recoverable=False, limit=True)


def span_of(first: Positioned, last: Positioned | None = None) -> Span:
    """The span of a token, or from one token to the end of another."""
    end = last or first
    return Span(first.line or 1, first.column or 1, end.end_line or 1, end.end_column or 1)
