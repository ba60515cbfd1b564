"""`tpucc check MODEL.tpu`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.cli.columns import filled
from tpucc.cli.failures import print_json
from tpucc.cli.messages import say
from tpucc.cli.options import FILE, compile_options, json_option, like_option, options_from
from tpucc.cli.progress import CompileProgress, Progress, told
from tpucc.cli.resumed import TEXT_SUFFIXES, refuse_like
from tpucc.data.archive import naming
from tpucc.diagnostics import counted, printable
from tpucc.driver import check_source
from tpucc.interop.sources import held_out_file, read_source
from tpucc.passes.input_arrays import checked_inputs


@click.command("check")
@click.argument("model", type=FILE)
@compile_options
@like_option
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing when the source is good.")
def command(model: Path, as_json: bool, quiet: bool, **given: Any) -> None:
    """Print what is wrong with MODEL: exactly what compile, with the same options, refuses it for. Nothing is written or executed.

    MODEL is a source (.tpu), or the text of a stage (.graph, .layers.graph, .tile, .asm): then --like names the model it was printed from.
    """
    if model.suffix in TEXT_SUFFIXES:
        from tpucc.cli.work import compiled  # it brings all that other commands need, pictures among it

        compiled(model, given, as_json or quiet)
        if as_json:
            print_json([])
        elif not quiet:
            click.echo(f"{printable(model.name)}: no errors")
        return
    refuse_like(given)
    options = options_from(given)
    with Progress(not quiet and not as_json) as progress:
        source = read_source(model, options.params, progress.stage)
        made = check_source(source, model.parent, options, CompileProgress(progress, options))
    if (place := held_out_file(model)).is_file():
        from tpucc.cli.labelled import held_out  # loads the runtime, which other sources don't need

        if (found := held_out(model, lambda notes: told(notes, quiet=quiet or as_json))) is not None:
            with naming(place):
                checked_inputs(made.graph.inputs, found[0], "held-out set")
    if as_json:
        print_json([])
        return
    if not quiet:
        for warning in made.warnings:
            say(warning.render(source))
        inputs = ", ".join(f"{node.name}: {node.type.brief}" for node in made.graph.inputs)
        results = ", ".join(f"{o.name}: {made.graph[o.node].type.brief}" for o in made.graph.outputs)
        nodes = counted(len(made.graph), "node")
        click.echo(filled(printable(f"{model.name}: {made.graph.name}({inputs}) -> {results}; {nodes}; no errors"), "", "  "))
