"""`tpucc viz MODEL.tpu --kind KIND -o FILE.svg`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import graphviz

from tpucc.api import Executable
from tpucc.cli.losses import layer_errors
from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.row_program import for_floats
from tpucc.cli.work import executable_from
from tpucc.diagnostics import printable
from tpucc.explain.tables import wrapped
from tpucc.output_files import write_file
from tpucc.see.pictures import CHARTS, DIAGRAMS, KINDS, LOSSES, PROGRAM_CHARTS, draw_diagrams
from tpucc.sim.timing import time_program

GET_GRAPHVIZ = "python -m pip install pygraphviz, or graphviz.org/download"
FORMATS = ("svg", "png", "pdf")


@click.command("viz")
@click.argument("model", type=FILE)
@click.option(
    "--kind", type=click.Choice(KINDS), metavar="KIND", default="layers", show_default=True, help=f"What to draw: {', '.join(KINDS)}."
)
@click.option("-o", "--output", type=FILE, metavar="FILE.svg", help="Where to write it (default: KIND.svg). A diagram may end in .dot.")
@click.option("--graphviz", "with_graphviz", is_flag=True, help="Have Graphviz draw the diagram; the file may end in .svg, .png or .pdf.")
@compile_options
@like_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, kind: str, output: Path | None, with_graphviz: bool, quiet: bool, **given: Any) -> None:
    """Draw one picture of MODEL, a source (.tpu) or a program (.tpub)."""
    place = output or Path(f"{kind}.svg")
    keep_inputs(place)
    with Progress(not quiet) as progress:
        program = for_floats(model) if kind in PROGRAM_CHARTS else None
        if program is not None:
            if kind == "memory" and not program.residents:
                raise click.UsageError(f"{program.name} has no memory map to draw: lines .resident give rows of memory names and times")
            progress.stage("draw")
            content = PROGRAM_CHARTS[kind](program, time_program(program)).encode()
        else:
            exe = executable_from(model, given, quiet, progress, of_accuracy=False)
            progress.stage("draw")
            program, content = exe.runtime.program, _drawn(exe, model, kind, place.suffix[1:], with_graphviz)
    write_file(place, content)
    if not quiet:
        click.echo(wrapped(printable(f"{place}: {kind} of {program.name}"), "  "))


def _drawn(exe: Executable, model: Path, kind: str, ending: str, with_graphviz: bool) -> bytes:
    """The picture as the content of a file with this ending."""
    if kind not in DIAGRAMS and (with_graphviz or ending == "dot"):
        what = "Graphviz draws diagrams" if with_graphviz else "the text of .dot is a diagram's"
        raise click.UsageError(f"{kind} is no diagram, and {what}: {', '.join(DIAGRAMS)}")
    if ending in FORMATS[1:] and not with_graphviz:
        raise click.UsageError(f"pictures are written as .svg; --graphviz writes a diagram as .{ending}: {', '.join(DIAGRAMS)}")
    if kind in CHARTS:
        return CHARTS[kind](exe.runtime).encode()
    if kind in LOSSES:
        return LOSSES[kind](exe.runtime.program.title, layer_errors(exe, model)).encode()
    made = exe.compilation
    graph, layers = (made.graph, made.layers) if made is not None else (None, None)
    drawn = draw_diagrams((kind,), graph, layers, exe.runtime)
    if kind not in drawn:
        raise click.UsageError(f"a program has no {kind} to draw; name its source")
    if with_graphviz:
        return _by_graphviz(drawn[kind].dot, ending)
    return (drawn[kind].dot if ending == "dot" else drawn[kind].svg).encode()


def _by_graphviz(dot: str, ending: str) -> bytes:
    """What Graphviz makes of a diagram in DOT."""
    if ending not in FORMATS:
        raise click.UsageError(f"Graphviz writes {', '.join(f'.{each}' for each in FORMATS)}, and the file ends in .{ending}")
    try:
        from pygraphviz import AGraph  # its wheels carry Graphviz; where there is none, a dot on the path draws
    except ImportError:
        try:
            return bytes(graphviz.pipe("dot", ending, dot.encode()))
        except graphviz.ExecutableNotFound:
            raise click.UsageError(f"Graphviz isn't installed: {GET_GRAPHVIZ}") from None
    return bytes(AGraph(string=dot).draw(format=ending, prog="dot"))
