"""How the errors of elaboration are raised, collected and put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tpucc.diagnostics import CompileError, Diagnostic, Label, LimitError, Source, Span
from tpucc.frontend.limits import Limits

SHOWN_CALLS = 4
"""Of a longer chain of calls the innermost are shown, and the outermost."""


@dataclass(eq=False)
class Problem(Exception):
    """One thing that is wrong with the source, at `span`; `label` stands beside the carets, `notes` point elsewhere."""

    code: str
    message: str
    span: Span
    label: str = ""
    help: tuple[str, ...] = ()
    notes: tuple[Label, ...] = ()


@dataclass(eq=False)
class LimitReached(Exception):
    """The source asks for more than the limits allow; elaboration ends here. `calls` led to the place, once they are known."""

    problem: Problem
    calls: tuple[Span, ...] | None = None


@dataclass(eq=False)
class Reports:
    """The diagnostics of one elaboration.

    A place is reported once for each code: what is wrong in a `def` is wrong at each of its calls, and in each round of a loop.
    """

    limits: Limits
    found: dict[tuple[str, Span], Diagnostic] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, problem: Problem, calls: Sequence[Span]) -> None:
        """Reports `problem`, which the chain of `calls` led to, the innermost first."""
        self.found.setdefault((problem.code, problem.span), diagnostic(problem, calls))
        if len(self.found) >= self.limits.errors:
            raise TooManyErrors

    def in_order(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.found.values(), key=lambda found: found.labels[0].span))

    def raise_any(self, source: Source) -> None:
        if self.found:
            raise CompileError(self.in_order(), source)


class TooManyErrors(Exception):
    """So many that more would not help."""


def diagnostic(problem: Problem, calls: Sequence[Span] = ()) -> Diagnostic:
    """The message for a problem, with the calls that led there as notes."""
    shown = calls if len(calls) <= SHOWN_CALLS + 1 else (*calls[:SHOWN_CALLS], calls[-1])
    chain = tuple(Label(span, "in this call") for span in shown)
    helps = tuple(text for text in problem.help if text)
    return Diagnostic(problem.code, problem.message, (Label(problem.span, problem.label), *problem.notes, *chain), helps)


def limit_error(reached: LimitReached, reports: Reports, source: Source) -> CompileError | LimitError:
    """What to raise when a limit ends the elaboration: errors that were found before count more."""
    last = diagnostic(reached.problem, reached.calls or ())
    return CompileError((*reports.in_order(), last), source) if reports else LimitError(last, source)
