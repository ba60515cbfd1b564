"""Errors for other programs and processes: any exception as one of ours, and an error's diagnostics as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError, Source


def as_error(error: Exception) -> Error:
    """The error; another exception as one of ours."""
    if isinstance(error, Error):
        return error
    if isinstance(error, MemoryError):
        return LimitError(Diagnostic("E0613", "out of memory; a smaller batch needs less"))
    return InternalError(Diagnostic("E0900", f"a fault in tpucc: {type(error).__name__}{f': {error}' if str(error) else ''}"))


def as_plain(error: Error) -> list[dict[str, Any]]:
    """An error's diagnostics for programs: where each is, its primary place first among the spans."""
    return [plain_diagnostic(diagnostic, error.source) for diagnostic in error.diagnostics]


def plain_diagnostic(found: Diagnostic, source: Source | None) -> dict[str, Any]:
    """A diagnostic of a source for programs: `file`, `line` and `column` are None where it has no place."""
    return {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "file": source.name if source else None,
        "line": found.span.line if found.span else None,
        "column": found.span.column if found.span else None,
        "spans": [asdict(label.span) | {"text": label.text} for label in found.labels],
        "help": list(found.help),
    }
