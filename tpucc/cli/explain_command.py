"""`tpucc explain CODE`."""

from __future__ import annotations

import click

from tpucc.cli.columns import prose
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from tpucc.explain import codes, explain


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain the error CODE with a program that shows it and its mend; without CODE, list all."""
    if code is None:
        for known in codes():
            text = explain(known)
            assert text is not None
            click.echo(text.splitlines()[0].removeprefix("# "))
        return
    text = explain(code.upper())
    if text is None:
        near = did_you_mean(code.upper(), codes())
        raise UsageError(Diagnostic("E0511", f"no error has the code {printable(code)}", help=(near,)))
    click.echo(prose(text).rstrip())
