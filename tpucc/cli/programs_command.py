"""`tpucc programs`."""

from __future__ import annotations

import click

from tpucc.cli.columns import described
from tpucc.interop.programs import examples, folder


@click.command("programs")
def command() -> None:
    """List the programs that come with tpucc; `tpucc new NAME` writes one of them, with its data."""
    known = examples()
    for name, example in known.items():
        click.echo(described(name, max(map(len, known)), example.summary))
    click.echo(f"\nThey lie in {folder()}.")
