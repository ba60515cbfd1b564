"""What the readers of all text forms share: the errors of lines, each at its place, and the longest number."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from tpucc.diagnostics import Diagnostic, Label, LineError, ProgramError, Source, Span
from tpucc.ir.digests import WITHOUT_DATA

REPORTED = 20
"""Errors of one text that are shown."""
MAX_DIGITS = 20
_P = ParamSpec("_P")


def line_error(code: str, message: str, span: Span, *help: str) -> LineError:
    return LineError(Diagnostic(code, message, (Label(span),), help))


class Errors:
    """The errors of one text. All are kept up to `REPORTED`, so that one run shows them together."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    @property
    def are_enough(self) -> bool:
        return len(self.found) >= REPORTED

    def add(self, code: str, message: str, span: Span, *help: str) -> None:
        self.found.append(line_error(code, message, span, *help).diagnostic)

    def attempt(self, read: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Reads something unless there are enough errors, and keeps its error. Whether there was none."""
        if not self.are_enough:
            try:
                read(*args, **kwargs)
            except LineError as error:
                self.found.append(error.diagnostic)
                return False
        return True

    def require_none(self, source: Source) -> None:
        """Raises `ProgramError` with the errors in the order of the text. Only the first of them says that the model must be named."""
        if self.found:
            ordered = sorted(self.found, key=lambda error: (error.span is None, error.span))
            unnamed = next((error for error in ordered if error.code == WITHOUT_DATA), None)
            raise ProgramError([error for error in ordered if error is unnamed or error.code != WITHOUT_DATA][:REPORTED], source)
