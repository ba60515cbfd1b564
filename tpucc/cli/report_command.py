"""`tpucc report MODEL.tpu -o FILE.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.progress import Progress
from tpucc.cli.resumed import source_of, stem_of
from tpucc.cli.work import compiled, held_out_accuracy
from tpucc.files import write_file
from tpucc.runtime.runtime import Runtime
from tpucc.viz.artifacts import artifacts


@click.command("report")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FILE.html", help="Where to write it (default: MODEL.html).")
@compile_options
@like_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, quiet: bool, **given: Any) -> None:
    """Write the self-contained page of MODEL: source, numbers, and every picture."""
    with Progress(not quiet) as progress:
        compilation = compiled(model, given, quiet, progress=progress)
        assert compilation.program is not None
        runtime = Runtime(compilation.program, progress.rounds)
        accuracy = held_out_accuracy(compilation, runtime, source_of(model, given), progress, quiet)
        progress.stage("draw the page")
        made = artifacts(compilation, runtime, stem_of(model), ("report",), accuracy)
    place = output or Path(f"{stem_of(model)}.html")
    write_file(place, made.files["report.html"])
    if not quiet:
        click.echo(f"{place}: open it in a browser")
