"""`tpucc compile MODEL.tpu [-o DIR]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.artifacts import EMIT, artifacts
from tpucc.cli.charts import chart_option, lanes_text, wants_chart
from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, compile_options, data_option, json_option, like_option, numerics_options, refuse_step_options
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.resumed import kinds_after, source_of, stem_of
from tpucc.cli.summary import compile_summary, compile_text
from tpucc.cli.work import Dump, compiled, held_out_accuracy
from tpucc.diagnostics import did_you_mean, printable
from tpucc.explain.timed import Timed
from tpucc.output_files import write_files


def _kinds(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    kinds = tuple(kind.strip() for kind in text.split(",") if kind.strip())
    for kind in kinds:
        if kind not in EMIT:
            near = did_you_mean(kind, EMIT)
            raise click.BadParameter(f"nothing is named {printable(kind)}; {near or 'there are ' + ', '.join(EMIT)}")
    return kinds


@click.command("compile")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="DIR", help="Where to write the files (default: build/MODEL).")
@compile_options
@like_option
@click.option("--emit", callback=_kinds, metavar="KIND,…", help=f"Only these files: {', '.join(EMIT)}.")
@click.option("--print-after", metavar="STAGE|all", help="Print the result of a stage in its text form.")
@click.option("--dump-dir", type=FILE, metavar="DIR", help="Write every stage's result there, numbered.")
@data_option
@click.option("--stop-after", metavar="STAGE", help="Stop after this stage; write nothing.")
@chart_option
@numerics_options
@click.option("--train", is_flag=True, help="Write the graph of one step of training in place of a program.")
@json_option
@click.option("--quiet", is_flag=True, help="Print no summary and no warnings.")
def command(
    model: Path,
    output: Path | None,
    emit: tuple[str, ...] | None,
    print_after: str | None,
    dump_dir: Path | None,
    with_data: bool,
    stop_after: str | None,
    chart: bool | None,
    train: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Compile MODEL; write its files and pictures; print a summary.

    MODEL is a source (.tpu), or the text of a stage, as printed or edited (.graph, .layers.graph, .tile, .asm): then --like names the model
    that it was printed from, and the stages from there on are run and their files written.

    With --train: make one step of MODEL's training, from its `train`; write train.graph, its picture (train.svg, train.dot) and that of
    its time on tpu_v2 or another machine for floats (time.svg).
    """
    if train:
        from tpucc.cli.step_work import compile_step  # compiling for the integer machine needs none of it

        with Progress(not quiet and not as_json) as progress:
            dump = Dump(print_after, dump_dir, progress, with_data)
            compile_step(model, output, given, dump, as_json, quiet, progress)
        return
    refuse_step_options()
    stem, kinds = stem_of(model), kinds_after(model, EMIT) if emit is None else emit
    with Progress(not quiet and not as_json) as progress:
        compilation = compiled(model, given, quiet, progress, dump=Dump(print_after, dump_dir, progress, with_data), stop_after=stop_after)
        if compilation.program is None or stop_after is not None:
            return
        runtime = Timed(compilation.program, progress.rounds)
        accuracy = held_out_accuracy(compilation, runtime, source_of(model, given), progress, quiet)
        progress.stage("draw and write the files")
        made = artifacts(compilation, runtime, stem, kinds, accuracy, with_data)
    folder = output or Path("build") / stem
    keep_inputs(*(folder / name for name in made.files))
    write_files(folder, made.files)
    files = [folder / name for name in made.files]
    if as_json:
        print_json(compile_summary(compilation, runtime, files))
    elif not quiet:
        lanes = lanes_text(runtime) if wants_chart(chart) else ""
        click.echo(compile_text(compilation, runtime, files, made.seconds, lanes))
