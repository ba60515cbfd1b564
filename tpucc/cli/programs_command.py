"""`tpucc programs`."""

from __future__ import annotations

import click

from tpucc.cli.columns import described
from tpucc.interop.programs import examples, folder


@click.command("programs")
def command() -> None:
    """List the programs that come with tpucc; `tpucc new NAME` writes one of them, with its data."""
    for name, example in examples().items():
        click.echo(described(name, 15, example.summary))
    click.echo(f"\nThey lie in {folder()}.")
