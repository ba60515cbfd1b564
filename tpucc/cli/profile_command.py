"""`tpucc profile MODEL.tpu|PROGRAM.tpub`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from tpucc.cli.charts import chart_option, charts_text, wants_chart
from tpucc.cli.columns import table_width
from tpucc.cli.failures import print_json
from tpucc.cli.options import FILE, compile_options, json_option, like_option, numerics_options, refuse_step_options, several_counts
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress, told
from tpucc.cli.resumed import source_of
from tpucc.cli.row_program import in_rows, print_profile
from tpucc.cli.work import compiled, executable_from, require_model
from tpucc.explain.by_pass import by_pass, by_pass_table
from tpucc.explain.noise import rounded_notes
from tpucc.explain.summary import by_lines
from tpucc.explain.tables import counts_table, scaling, scaling_table, stream_cycles, stream_table, timeline_table, what_if_table, wrapped
from tpucc.explain.timed import Timed, assumption_words, assumptions
from tpucc.explain.trace import trace_events
from tpucc.output_files import write_file

OVERLAPPED, SERIAL = "overlapped", "serial"
LAYER, LINE, PASS = "layer", "line", "pass"


@click.command("profile")
@click.argument("model", type=FILE)
@partial(compile_options, cores=several_counts)
@like_option
@click.option(
    "--timing",
    type=click.Choice([OVERLAPPED, SERIAL]),
    default=OVERLAPPED,
    show_default=True,
    help="How to count: units at work together; or one after the other, beside the counts of SCALE-Sim and OpenTPU.",
)
@click.option(
    "--batches",
    type=click.IntRange(min=1),
    metavar="N",
    help="Time a stream of N batches, whose inputs arrive and whose outputs leave while others compute.",
)
@click.option(
    "--by",
    type=click.Choice([LAYER, LINE, PASS]),
    default=LAYER,
    show_default=True,
    help="What has a row: each layer; each line of the source, with its layers added up; or each pass, with what it gives.",
)
@click.option(
    "--trace", type=FILE, metavar="FILE.json", help="Also write a trace for Perfetto or chrome://tracing; FILE.json.gz is smaller."
)
@click.option("--train", is_flag=True, help="Time one step of MODEL's training instead, on a machine for floats (default: tpu_v2).")
@numerics_options
@click.option("--error", is_flag=True, help="Print where accuracy is lost instead: what each layer costs, the costliest first.")
@chart_option
@json_option
@click.option("--quiet", is_flag=True, help="No warnings, no progress.")
def command(
    model: Path,
    cores: tuple[int, ...],
    timing: str,
    batches: int | None,
    by: str,
    trace: Path | None,
    train: bool,
    error: bool,
    chart: bool | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Print where the cycles go, per layer and in all. Nothing is executed.

    MODEL is a source (.tpu) or a program (.tpub). With several numbers of cores (--cores 1,2,4,8) a table compares them instead.

    With --error each layer is executed in integers, and all others in float32: on MODEL_test.npz beside the source, where there is one,
    else on the calibration inputs. Of many rows some are taken, evenly spread, as each layer is a run of the model.

    With --train the table has the parts of a step and its longest groups of operators, and for how long each unit is at work.
    """
    if train:
        from tpucc.cli.step_profile import profile_step  # counting the cycles of a program needs none of it

        with Progress(not quiet and not as_json) as progress:
            profile_step(model, cores, given, as_json, quiet, progress)
        return
    refuse_step_options()
    _require_possible(cores, timing, batches, by, trace, chart, error)
    if error or by == PASS:
        (_print_losses if error else _print_passes)(model, {**given, "cores": cores[0]}, as_json, quiet)
        return
    if (rows := in_rows(model)) is not None:
        print_profile(rows, as_json)
        return
    keep_inputs(trace)
    charted = chart or (len(cores) == 1 and timing == OVERLAPPED and wants_chart(chart))
    with Progress(not quiet and not as_json) as progress:
        runtimes = [
            executable_from(model, {**given, "cores": count}, quiet or count != cores[0], progress, of_accuracy=False).runtime
            for count in cores
        ]
        progress.stage("time")
        if trace is not None:
            write_file(trace, trace_events(runtimes[0].program, runtimes[0].timeline, compressed=trace.suffix == ".gz"))
        numbers = _numbers(runtimes, timing, batches, by) if as_json else {}
        texts = [] if as_json else [_table(runtimes, timing, batches, by), *([charts_text(runtimes[0])] if charted else [])]
    if as_json:
        print_json(numbers)
    else:
        click.echo("\n\n".join(texts))


def _require_possible(
    cores: tuple[int, ...], timing: str, batches: int | None, by: str, trace: Path | None, chart: bool | None, error: bool
) -> None:
    """Raises `UsageError` for options that say nothing together."""
    one_batch = len(cores) == 1 and timing == OVERLAPPED and batches is None
    pictures = trace is not None or chart
    if error and not (one_batch and by == LAYER and not pictures):
        raise click.UsageError("--error stands alone: it counts no cycles")
    if len(cores) > 1 and pictures:
        raise click.UsageError(f"{'--chart' if trace is None else '--trace'} is of one number of cores")
    if batches is not None and (len(cores) > 1 or timing != OVERLAPPED):
        raise click.UsageError("--batches is of one number of cores, and of --timing overlapped")
    if by != LAYER and not one_batch:
        raise click.UsageError(f"--by {by} is of one number of cores, of one batch, and of --timing overlapped")
    if by == PASS and pictures:
        raise click.UsageError(f"--by pass has no {'chart' if trace is None else 'trace'}: it times several programs")


def _print_losses(model: Path, given: Mapping[str, Any], as_json: bool, quiet: bool) -> None:
    from tpucc.cli.losses import measured_losses  # counting cycles needs none of it
    from tpucc.explain.sensitivity import losses_json, losses_table

    with Progress(not quiet and not as_json) as progress:
        exe = executable_from(model, given, quiet, progress)
        progress.stage("measure each layer")
        found, rows = measured_losses(exe, source_of(model, given))
        told((*rows.notes, *rounded_notes(exe.compilation.meant if exe.compilation else None)), progress, quiet)
    name, integers = exe.runtime.program.name, exe.runtime.integers
    if as_json:
        print_json(losses_json(name, found, rows.what))
    else:
        click.echo(losses_table(name, found, rows.what, integers, table_width()))


def _print_passes(model: Path, given: Mapping[str, Any], as_json: bool, quiet: bool) -> None:
    require_model(model)
    with Progress(not quiet and not as_json) as progress:
        compilation = compiled(model, given, quiet, progress, of_accuracy=False)
        progress.stage("compile without passes")
        steps = by_pass(compilation, model.parent)
    if as_json:
        print_json({"passes": [asdict(step) for step in steps]})
    else:
        click.echo(by_pass_table(steps))


def _table(runtimes: Sequence[Timed], timing: str, batches: int | None, by: str) -> str:
    if len(runtimes) > 1:
        return scaling_table(runtimes)
    if batches is not None:
        return stream_table(runtimes[0], batches)
    if timing == SERIAL:
        return counts_table(runtimes[0], table_width())
    words = assumption_words(runtimes[0])
    texts = [timeline_table(runtimes[0], table_width(), by_line=by == LINE), what_if_table(runtimes[0]), wrapped(words, "  ")]
    return "\n\n".join(text for text in texts if text)


def _numbers(runtimes: Sequence[Timed], timing: str, batches: int | None, by: str) -> dict[str, Any]:
    """The contents of `stats.json`, with all counts or the sums by lines if asked for; for several numbers of cores, the rows of the
    table."""
    if len(runtimes) == 1:
        stats = runtimes[0].stats
        if batches is not None:
            return {**stats, "batches": {"count": batches, "cycles": stream_cycles(stats, batches)}}
        if by == LINE:
            return {**stats, "lines": by_lines(stats["layers"])}
        if timing == OVERLAPPED:
            assumed, faster = ([asdict(each) for each in found] for found in (assumptions(runtimes[0]), runtimes[0].faster))
            return {**stats, "assumptions": assumed, "what_if": faster}
        return {**stats, "counts": runtimes[0].counts}
    program = runtimes[0].program
    return {"model": program.name, "target": program.target.name, "scaling": scaling(runtimes)}
