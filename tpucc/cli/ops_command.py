"""`tpucc ops [NAME]`."""

from __future__ import annotations

from dataclasses import fields

import click

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean
from tpucc.ops import OPS
from tpucc.ops.signature import signature


@click.command("ops")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the operators, or print what NAME does, its attributes and how it runs."""
    if name is None:
        for known, op in OPS.items():
            click.echo(f"{known:<16} {op.summary}")
        return
    if name not in OPS:
        near = did_you_mean(name, OPS)
        raise UsageError(Diagnostic("E0512", f"no operator is named {name}", help=(near,) if near else ()))
    op = OPS[name]
    click.echo(f"{signature(op)}\n\n{op.summary}\n\n{op.documentation}")
    if fields(op.attributes):
        click.echo("\nattributes: " + ", ".join(f"{f.name}: {f.type}" for f in fields(op.attributes)))
