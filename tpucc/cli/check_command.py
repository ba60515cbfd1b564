"""`tpucc check MODEL.tpu`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.columns import filled
from tpucc.cli.options import params_option
from tpucc.diagnostics import counted, printable
from tpucc.driver import Options, front_end
from tpucc.interop.sources import read_source


@click.command("check")
@click.argument("model", type=click.Path(path_type=Path))
@params_option
@click.option("--quiet", is_flag=True, help="Print nothing when the source is good.")
def command(model: Path, params: dict[str, str], quiet: bool) -> None:
    """Print the diagnostics of MODEL, fast: nothing is compiled, no weights are read."""
    source = read_source(model)
    checked = front_end(source, Options(params=params))
    for warning in checked.warnings:
        click.echo(warning.render(source), err=True)
    if not quiet:
        inputs = ", ".join(f"{node.name}: {node.type.brief}" for node in checked.graph.inputs)
        results = ", ".join(f"{o.name}: {checked.graph[o.node].type.brief}" for o in checked.graph.outputs)
        nodes = counted(len(checked.graph), "node")
        click.echo(filled(printable(f"{model.name}: {checked.graph.name}({inputs}) -> {results}; {nodes}; no errors"), "", "  "))
