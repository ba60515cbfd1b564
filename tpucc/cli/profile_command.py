"""`tpucc profile MODEL.tpu|PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tpucc.cli.options import FILE, compile_options
from tpucc.cli.work import executable_from, print_json
from tpucc.outputs import write_file
from tpucc.sim.trace import trace_events
from tpucc.tables import counts_table, timeline_table

OVERLAPPED, SERIAL = "overlapped", "serial"


@click.command("profile")
@click.argument("model", type=FILE)
@compile_options
@click.option(
    "--timing",
    type=click.Choice([OVERLAPPED, SERIAL]),
    default=OVERLAPPED,
    show_default=True,
    help="How to count: units at work together; or one after the other, beside the counts of SCALE-Sim and OpenTPU.",
)
@click.option("--trace", type=FILE, metavar="FILE.json", help="Also write a trace for Perfetto or chrome://tracing.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--quiet", is_flag=True, help="No warnings, no progress.")
def command(model: Path, timing: str, trace: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Print where the cycles go, per layer and in all. Nothing is executed.

    MODEL is a source (.tpu) or a program (.tpub).
    """
    runtime = executable_from(model, given, quiet).runtime
    if trace is not None:
        write_file(trace, trace_events(runtime.program, runtime.timeline))
    if as_json:
        print_json(runtime.stats if timing == OVERLAPPED else {**runtime.stats, "counts": runtime.counts})
    else:
        click.echo(timeline_table(runtime) if timing == OVERLAPPED else counts_table(runtime))
