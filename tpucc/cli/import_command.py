"""`tpucc import MODEL.onnx`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from tpucc.cli.columns import filled
from tpucc.cli.options import FILE, option
from tpucc.cli.places import beside, keep_inputs, refuse_others
from tpucc.cli.progress import Progress
from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.interop.onnx.reading.network_of import LAYOUTS, Layout
from tpucc.interop.onnx.reading.text import imported_model, model_files
from tpucc.interop.sources import open_sizes
from tpucc.output_files import write_files

AWAY = "-o gives another name; or move this file away"


@click.command("import")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="MODEL.tpu", help="The source to write (default: MODEL.tpu beside MODEL.onnx).")
@option("params")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="nhwc",
    show_default=True,
    help="How the model takes and gives images: channels last, or as the file has them.",
)
def command(model: Path, output: Path | None, params: Mapping[str, str], layout: Layout) -> None:
    """Write the network of MODEL, an ONNX file, as a source, with its weights beside it (MODEL.npz).

    -D gives sizes that the file leaves open: the batch (8 unless given), and others by their names. A source that is there
    with another text is never written over, and other weights only with -o, beside the same source.
    """
    target = output or beside(model, ".tpu")
    if target.suffix != ".tpu":
        raise UsageError(Diagnostic("E0505", f"can't write {printable(str(target))}: a source ends in .tpu"))
    with Progress(True) as progress:
        made = imported_model(model, target.stem, open_sizes(params), layout, begin=progress.stage)
    files = model_files(made.source, made.weights, target.stem, target.stem)
    keep_inputs(*(target.parent / name for name in files))
    refuse_others(target.parent, {target.name: files[target.name]}, AWAY)
    if not target.exists():  # weights that are there are another model's
        refuse_others(target.parent, files, AWAY)
    elif output is None:
        refuse_others(target.parent, files)
    write_files(target.parent, files)
    lines, values = made.source.count("\n"), sum(array.size for array in made.weights.values())
    weights = f", {target.stem}.npz ({counted(len(made.weights), 'array')}, {counted(values, 'value')})" if made.weights else ""
    click.echo(filled(f"{printable(str(target))} ({counted(lines, 'line')}){weights}", "", "  "))
