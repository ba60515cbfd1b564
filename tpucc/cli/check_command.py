"""`tpucc check MODEL.tpu`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.cli.columns import filled
from tpucc.cli.failures import print_json
from tpucc.cli.labelled import held_out
from tpucc.cli.messages import say
from tpucc.cli.options import FILE, compile_options, json_option, like_option, options_from
from tpucc.cli.resumed import TEXT_SUFFIXES, refuse_like
from tpucc.diagnostics import counted, printable
from tpucc.driver import check_source
from tpucc.interop.sources import read_source


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
    source = read_source(model)
    checked = check_source(source, model.parent, options_from(given))
    held_out(model)
    if as_json:
        print_json([])
        return
    if not quiet:
        for warning in checked.warnings:
            say(warning.render(source))
        inputs = ", ".join(f"{node.name}: {node.type.brief}" for node in checked.graph.inputs)
        results = ", ".join(f"{o.name}: {checked.graph[o.node].type.brief}" for o in checked.graph.outputs)
        nodes = counted(len(checked.graph), "node")
        click.echo(filled(printable(f"{model.name}: {checked.graph.name}({inputs}) -> {results}; {nodes}; no errors"), "", "  "))
