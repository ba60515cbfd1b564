"""`tpucc viz MODEL.tpu --kind KIND -o FILE.svg`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.api import Executable
from tpucc.cli.losses import layer_errors
from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.work import executable_from
from tpucc.diagnostics import printable
from tpucc.files import write_file
from tpucc.viz.pictures import CHARTS, KINDS, LOSSES, draw_diagrams
from tpucc.viz.tables import wrapped


@click.command("viz")
@click.argument("model", type=FILE)
@click.option("--kind", type=click.Choice(KINDS), default="layers", show_default=True, help="What to draw.")
@click.option("-o", "--output", type=FILE, metavar="FILE.svg", help="Where to write it (default: KIND.svg). A diagram may end in .dot.")
@compile_options
@like_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, kind: str, output: Path | None, quiet: bool, **given: Any) -> None:
    """Draw one picture of MODEL, a source (.tpu) or a program (.tpub)."""
    place = output or Path(f"{kind}.svg")
    keep_inputs(place)
    with Progress(not quiet) as progress:
        exe = executable_from(model, given, quiet, progress, of_accuracy=False)
        progress.stage("draw")
        text, how = _drawn(exe, model, kind, place.suffix == ".dot")
    write_file(place, text.encode())
    if not quiet:
        click.echo(wrapped(printable(f"{place}: {kind} of {exe.runtime.program.name}{how}"), "  "))


def _drawn(exe: Executable, model: Path, kind: str, as_dot: bool) -> tuple[str, str]:
    """The picture as text, and in words what laid it out."""
    if kind in CHARTS:
        return CHARTS[kind](exe.runtime), ""
    if kind in LOSSES:
        return LOSSES[kind](exe.runtime.program.title, layer_errors(exe, model)), ""
    made = exe.compilation
    graph, layers = (made.graph, made.layers) if made is not None else (None, None)
    drawn = draw_diagrams((kind,), graph, layers, exe.runtime)
    if kind not in drawn:
        raise click.UsageError(f"a program has no {kind} to draw; name its source")
    return drawn[kind].dot if as_dot else drawn[kind].svg, f" with {drawn[kind].renderer}"
