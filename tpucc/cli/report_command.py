"""`tpucc report MODEL.tpu -o FILE.html`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from tpucc.artifacts import artifacts
from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.cli.resumed import source_of, stem_of
from tpucc.cli.work import compiled, held_out_accuracy, require_model
from tpucc.diagnostics import printable
from tpucc.explain.by_pass import Step
from tpucc.explain.by_pass import by_pass as steps_by_pass
from tpucc.explain.recording import MOST
from tpucc.explain.timed import Timed
from tpucc.files import read_file
from tpucc.numerics import Int64
from tpucc.output_files import write_file
from tpucc.see.page.hardware import read_trace


class Window(click.ParamType[range]):
    """Instructions from one to another, or none: `7`, `400:799`, `none`."""

    name = "values"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        if isinstance(value, range) or value == "none":
            return range(0) if value == "none" else value
        words = str(value).split(":")
        if len(words) > 2 or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
            self.fail(f"{value!r} is neither instructions like 400:799 nor none", param, ctx)
        return range(int(words[0]), int(words[-1]) + 1)


@click.command("report")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FILE.html", help="Where to write it (default: MODEL.html).")
@click.option("--values", type=Window(), metavar="A:B|none", help="The instructions whose values the view of the machine has.")
@click.option("--by-pass", is_flag=True, help="Show what each pass gives, too: the model is compiled once more for each of them.")
@click.option(
    "--vcd", "trace", type=FILE, metavar="FILE.vcd", help="The hardware's registers, from tpucc rtl run, in the view of the machine."
)
@compile_options
@like_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, values: range | None, by_pass: bool, trace: Path | None, quiet: bool, **given: Any) -> None:
    """Write the self-contained page of MODEL: source, numbers, and every picture."""
    place = output or Path(f"{stem_of(model)}.html")
    keep_inputs(place)
    if by_pass:
        require_model(model)
    with Progress(not quiet) as progress:
        compilation = compiled(model, given, quiet, progress)
        assert compilation.program is not None
        runtime = Timed(compilation.program, progress.rounds)
        accuracy = held_out_accuracy(compilation, runtime, source_of(model, given), progress, quiet)
        hardware = None if trace is None else read_trace(read_file(trace).decode("utf-8", "replace"), trace.name, compilation.program)
        steps: Sequence[Step] = ()
        if by_pass:
            progress.stage("compile without passes")
            steps = steps_by_pass(compilation, model.parent)
        progress.stage("draw the page")
        window = _chosen(values, len(compilation.program.instructions))
        made = artifacts(compilation, runtime, stem_of(model), ("report",), accuracy, window=window, steps=steps, hardware=hardware)
    write_file(place, made.files["report.html"])
    if not quiet:
        click.echo(f"{printable(str(place))}: open it in a browser")


def _chosen(values: range | None, count: int) -> Int64 | None:
    """The numbers of the instructions that were asked for. Raises `BadParameter` where the program, or a page, has no room for them."""
    if values is None:
        return None
    if values.stop and not values.start < values.stop <= count:
        raise click.BadParameter(f"there are instructions 0 to {count - 1:,}", param_hint="--values")
    if len(values) > MOST:
        raise click.BadParameter(
            f"{len(values):,} instructions are too many for one page; {MOST:,} are not: {values.start}:{values.start + MOST - 1}",
            param_hint="--values",
        )
    return np.arange(values.start, values.stop, dtype=np.int64)
