"""Problems of a source: how parsing and elaboration raise, collect and sort them, and how much a source may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import CompileError, Diagnostic, Label, LimitError, Source, Span

SHOWN_CALLS = 4
"""Of a longer chain of calls the innermost are shown, and the outermost."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one compilation. A source that crosses one gets a `LimitError` at the place where it does."""

    source_bytes: int = 8 * 2**20
    brackets: int = 100
    """Brackets, signs or `not`s inside each other, and `.name`, `(…)` or `[…]` after one value."""
    blocks: int = 50
    """Indented blocks inside each other."""
    operators: int = 10_000
    """Operators of one level in one expression: `a + b + c` has two."""
    digits: int = 100
    calls: int = 50
    """Calls of `def`s inside each other."""
    all_calls: int = 100_000
    """Calls of `def`s in all: each is inlined, and defs that call each other twice double them at every level."""
    steps: int = 5_000_000
    """Statements run and expressions evaluated in all. Where a whole list is read or made, each of its elements is a step too."""
    iterations: int = 1_000_000
    """Rounds of all loops together; an unrolled loop in a function counts at each call."""
    nodes: int = 100_000
    elements: int = 2**40
    """Elements of one tensor."""
    static_elements: int = 1_000_000
    """Elements of a static list with all its inner lists; characters of a static string."""
    integer: int = 2**63
    """Static integers lie strictly between this and its negative."""
    instructions: int = 4_000_000
    """Instructions of one program, host transfers not counted. Compiling two million takes minutes, and 3 GB with the pictures."""
    errors: int = 50
    """Errors reported in one run."""


DEFAULT = Limits()


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


class Unknown(Exception):
    """A value that is needed is wrong, and reported: what depends on it is left out."""


@dataclass(eq=False)
class Reports:
    """The diagnostics of a source.

    A place is reported once for each code: what is wrong in a `def` is wrong at each of its calls, and in each round of a loop.
    """

    source: Source
    limits: Limits
    found: dict[tuple[str, Span], Diagnostic] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, problem: Problem, calls: Sequence[Span] = ()) -> None:
        """Reports `problem`, which the chain of `calls` led to. Raises `CompileError` when more errors would not help."""
        self._take({(problem.diagnostic.code, problem.span): problem.reached_by(calls)})

    @contextmanager
    def with_those_of(self, other: Reports) -> Iterator[None]:
        """Adds, at the end, what another elaboration of the same source has found. Raises `CompileError` when they are too many."""
        try:
            yield
        finally:
            self._take(other.found)

    def in_order(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.found.values(), key=lambda found: found.labels[0].span))

    def raise_any(self) -> None:
        if self.found:
            raise CompileError(self.in_order(), self.source)

    def limit_error(self, reached: LimitReached) -> CompileError | LimitError:
        """The exception when a limit ends the work. It has the errors found before, if there are any."""
        last = reached.reached_by(reached.calls or ())
        return CompileError((*self.in_order(), last), self.source) if self.found else LimitError(last, self.source)

    def _take(self, found: dict[tuple[str, Span], Diagnostic]) -> None:
        self.found |= {place: found[place] for place in found if place not in self.found}
        if len(self.found) >= self.limits.errors:
            self.raise_any()
