"""`tpucc ops [NAME]`."""

from __future__ import annotations

from dataclasses import fields

import click

from tpucc.cli.columns import described, filled, prose
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from tpucc.interop.onnx.writing.words import documented, in_words
from tpucc.ops import INTERNAL, OPS


@click.command("ops")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the operators, or print what NAME does, its attributes and its ONNX form."""
    if name is None:
        for known, op in OPS.items():
            if known not in INTERNAL:
                click.echo(described(known, 22, op.summary))
        click.echo("\nin graphs only, made of other syntax, by passes and by gradients:")
        for known in sorted(INTERNAL):
            click.echo(described(known, 22, OPS[known].summary))
        return
    if name not in OPS:
        near = did_you_mean(name, OPS)
        raise UsageError(Diagnostic("E0512", f"no operator is named {printable(name)}", help=(near,)))
    op = OPS[name]
    click.echo("\n\n".join(filter(None, (filled(op.signature, "", "    "), filled(op.summary), prose(documented(op)).rstrip()))))
    if fields(op.attributes):
        click.echo("\n" + filled("attributes: " + ", ".join(f"{f.name}: {f.type}" for f in fields(op.attributes)), "", "  "))
    if name in INTERNAL:
        click.echo("\nin graphs only: a source can't call it")
    click.echo("\n" + filled(in_words(op)))
