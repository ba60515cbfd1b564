"""`tpucc new NAME [--from EXAMPLE]`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.columns import filled
from tpucc.cli.options import FILE
from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.interop.programs import NAME, example, examples
from tpucc.output_files import write_files

DEFAULT = "digits_mlp"


@click.command("new")
@click.argument("name")
@click.option(
    "--from", "like", metavar="PROGRAM", help=f"The program to begin with, one of `tpucc programs` (default: NAME's, or {DEFAULT})."
)
@click.option("-o", "--output", type=FILE, metavar="DIR", help="The folder to write (default: NAME).")
def command(name: str, like: str | None, output: Path | None) -> None:
    """Write a model named NAME, with its data, into a new folder: a copy of a program that comes with tpucc, to be changed."""
    if not NAME.fullmatch(name):
        said = printable(name) or "an empty text"
        raise UsageError(Diagnostic("E0528", f"{said} can't name a model's files: names have letters, digits, _ and -"))
    made = example(like if like is not None else name if name in examples() else DEFAULT)
    folder = output or Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            Diagnostic("E0528", f"{printable(str(folder))} is there already", help=("give another name, or another folder with -o",))
        )
    files = made.written_as(name)
    write_files(folder, files)
    click.echo(filled(f"{printable(str(folder))}: {', '.join(files)}, from {made.name}", "", "  "))
    if (model := made.model_in(name)) != name:
        click.echo(filled(f"its model is named {model}, as no model there can be named {name}", "", "  "))
    click.echo(f"\ncd {printable(str(folder))}")
    steps = {
        "compile": "writes its files and pictures",
        "run --check": "runs and checks it",
        "watch": "shows it in the browser, new on every save",
    }
    commands = [f"tpucc {verb} {name}.tpu {flags}".rstrip() for verb, _, flags in (step.partition(" ") for step in steps)]
    for line, says in zip(commands, steps.values(), strict=True):
        click.echo(f"{line:<{max(map(len, commands))}}  # {says}")
