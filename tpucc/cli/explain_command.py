"""`tpucc explain CODE`."""

from __future__ import annotations

import re

import click

from tpucc.cli.columns import prose
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from tpucc.explain.codes import codes, explain


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
    full = _full(code)
    text = explain(full)
    if text is None:
        sizes = (3,) if re.fullmatch(r"[EV]\d{4}", full) else (3, 1, 0)
        alike = ([known for known in codes() if known.startswith(full[:size])] for size in sizes)
        near = next(filter(None, (did_you_mean(full, known) for known in alike)), "") or "tpucc explain without a code lists all"
        raise UsageError(Diagnostic("E0511", f"no error has the code {printable(code)}", help=(near,)))
    click.echo(prose(text).rstrip())


def _full(code: str) -> str:
    """`E0301` of what people type for it: `301`, `e301`, `E301`. A number alone is an error's, not that of a rule of the verifier."""
    short = re.fullmatch(r"([EV]?)(\d{1,4})", code.upper(), re.ASCII)
    return f"{short[1] or 'E'}{short[2]:0>4}" if short else code.upper()
