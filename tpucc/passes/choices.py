"""Options of passes that have one of a few values."""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, printable


def require_choice(what: str, asked: str, choices: Sequence[str]) -> None:
    """Raises `UsageError` E0517 where an option has another value than one of `choices`; `what` says what is chosen, as "granularity"."""
    if asked not in choices:
        near = did_you_mean(asked, choices) or f"it is {listed(choices, 'or')}"
        raise UsageError(Diagnostic("E0517", f"no {what} is named {printable(asked)}", help=(near,)))
