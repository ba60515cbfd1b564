"""`tpucc report MODEL.tpu -o FILE.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.artifacts import artifacts
from tpucc.cli.options import FILE, compile_options
from tpucc.cli.work import compiled, held_out_accuracy
from tpucc.outputs import write_file
from tpucc.runtime import Runtime


@click.command("report")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FILE.html", help="Where to write it (default: MODEL.html).")
@compile_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, quiet: bool, **given: Any) -> None:
    """Write the self-contained page of MODEL: source, numbers, and every picture."""
    compilation = compiled(model, given, quiet)
    assert compilation.program is not None
    runtime = Runtime(compilation.program)
    made = artifacts(compilation, runtime, model.stem, ("report",), held_out_accuracy(compilation, runtime, model))
    place = output or Path(f"{model.stem}.html")
    write_file(place, made.files["report.html"])
    if not quiet:
        click.echo(f"{place}: open it in a browser")
