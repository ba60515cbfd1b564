"""Problems of a source: how parsing and elaboration raise, collect and sort them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tpucc.diagnostics import CompileError, Diagnostic, Label, LimitError, Source, Span
from tpucc.frontend.limits import Limits

SHOWN_CALLS = 4
"""Of a longer chain of calls the innermost are shown, and the outermost."""


class Fault(Exception):
    """A message about the place `span`; `label` stands beside the carets, `notes` point elsewhere, and empty helps are left out.

    After one that is `final`, nothing that follows in the source can be trusted.
    """

    def __init__(
        self, code: str, message: str, span: Span, label: str = "", *help: str, notes: tuple[Label, ...] = (), final: bool = False
    ) -> None:
        super().__init__(message)
        self.span, self.final = span, final
        self.diagnostic = Diagnostic(code, message, (Label(span, label), *notes), help)

    def reached_by(self, calls: Sequence[Span]) -> Diagnostic:
        """The message, with the calls that led there as notes, the innermost first."""
        shown = calls if len(calls) <= SHOWN_CALLS + 1 else (*calls[:SHOWN_CALLS], calls[-1])
        chain = tuple(Label(span, "in this call") for span in shown)
        return replace(self.diagnostic, labels=self.diagnostic.labels + chain)


class Problem(Fault):
    """One thing that is wrong with the source; others may be found after it."""


class LimitReached(Fault):
    """The source isn't wrong, but asks for more than the limits allow; nothing goes on. `calls` led there, once they are known."""

    calls: tuple[Span, ...] | None = None


class TooManyErrors(Exception):
    """So many that more would not help."""


@dataclass(eq=False)
class Reports:
    """The diagnostics of a source.

    A place is reported once for each code: what is wrong in a `def` is wrong at each of its calls, and in each round of a loop.
    """

    limits: Limits
    found: dict[tuple[str, Span], Diagnostic] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, problem: Problem, calls: Sequence[Span] = ()) -> None:
        """Reports `problem`, which the chain of `calls` led to. Raises `TooManyErrors`."""
        self.found.setdefault((problem.diagnostic.code, problem.span), problem.reached_by(calls))
        if len(self.found) >= self.limits.errors:
            raise TooManyErrors

    def take(self, other: Reports) -> None:
        """Adds what another elaboration of the same source has found. Raises `TooManyErrors`."""
        self.found = {**other.found, **self.found}
        if len(self.found) >= self.limits.errors:
            raise TooManyErrors

    def in_order(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.found.values(), key=lambda found: found.labels[0].span))

    def raise_any(self, source: Source) -> None:
        if self.found:
            raise CompileError(self.in_order(), source)

    def limit_error(self, reached: LimitReached, source: Source) -> CompileError | LimitError:
        """The exception when a limit ends the work. It has the errors found before, if there are any."""
        last = reached.reached_by(reached.calls or ())
        return CompileError((*self.in_order(), last), source) if self.found else LimitError(last, source)


class Positioned(Protocol):
    """A token of lark, as far as places go."""

    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None


def span_of(token: Positioned) -> Span:
    """The span of a token."""
    return Span(token.line or 1, token.column or 1, token.end_line or 1, token.end_column or 1)
