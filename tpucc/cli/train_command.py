"""`tpucc train MODEL.tpu`."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tpucc.cli.failures import print_json
from tpucc.cli.messages import warnings_of
from tpucc.cli.options import FILE, json_option, numerics_options, option
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.diagnostics import counted, printable
from tpucc.explain.quantities import size
from tpucc.explain.tables import table, wrapped
from tpucc.interop.sources import read_source
from tpucc.machines.v2.links import all_reduce
from tpucc.output_files import write_files
from tpucc.sim.durations import duration
from tpucc.target import Target
from tpucc.training.session import EPOCHS, EXECUTORS, HOST, Session, Settings, elements
from tpucc.training.start import started
from tpucc.training.state import Epoch
from tpucc.training_page import WRITTEN, measured, write_training

INTERRUPTED = 130
"""The exit status of a command that the user has stopped."""


@click.command("train")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="DIR", help="Where to write the files (default: build/MODEL).")
@click.option("--epochs", type=click.IntRange(0), metavar="N", help=f"Epochs to train, counted from --resume (default {EPOCHS}).")
@click.option("--steps", type=click.IntRange(0), metavar="N", help="Steps to train, counted from --resume, in place of epochs.")
@click.option("--target", default=HOST, show_default=True, metavar="NAME", help="Whose arithmetic: host, tpu_v2, tpu_v3 or tpu_v4i.")
@click.option(
    "--executor", type=click.Choice([*EXECUTORS]), default="reference", show_default=True, help=f"machine: {EXECUTORS['machine']}."
)
@click.option("--cores", type=int, default=1, show_default=True, help="Cores that share the batch.")
@click.option("--microbatches", type=int, default=1, show_default=True, help="Parts that each core makes of its share, one after another.")
@numerics_options
@click.option("--examples", type=FILE, metavar="X.npz", help="Train on these, not on those that the source names.")
@click.option("--held-out", type=FILE, metavar="X.npz", help="Measure on these rows and labels (default: MODEL_test.npz, if it is there).")
@click.option("--weights", type=FILE, metavar="W.npz", help="Begin with these weights, not with new ones.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Draws order, dropout, and weights if the source has no seed (default 0).")
@click.option("--resume", type=FILE, metavar="state.npz", help="Go on from this state.")
@option("params")
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, params: Mapping[str, str], as_json: bool, quiet: bool, **given: Any) -> int:
    """Train MODEL by its `train`: write the weights, the state, the history and a page; print loss and held-out accuracy an epoch.

    Ctrl-C stops, drops the step that isn't done, and writes the files: --resume goes on from the state to the same bits.
    """
    source = read_source(model)
    folder = output or Path("build") / model.stem
    keep_inputs(*(folder / name for name in WRITTEN), named=("examples",))
    with Progress(not quiet and not as_json) as progress:
        progress.stage("make the step graph")
        session = started(source, model.parent, model.stem, params, Settings(**given))
        write_files(folder, {})  # a folder that can't be written is an error before the training, not after it
        warnings = warnings_of(session.model.warnings, source, session.notes)
        for warning in () if quiet else warnings:
            progress.say(warning)
        table = _Table(session, progress, shown=not quiet and not as_json)
        stopped = _run(session, table, progress)
        progress.stage("draw and write the files")
        files = write_training(session, folder)
    paths = [printable(str(folder / name)) for name in files]
    if as_json:
        rates = session.rates
        cost = asdict(all_reduce(session.step.reduced_bytes, session.settings.cores, rates)) if rates.ici_bandwidth else None
        print_json(session.history | {"stopped": stopped, "all_reduce_by_formula": cost, "files": paths, "warnings": warnings})
    elif not quiet:
        click.echo(_ending(session, model, folder, stopped))
    return INTERRUPTED if stopped else 0


def _run(session: Session, table: _Table, progress: Progress) -> bool:
    """Trains to the end; says whether the user stopped it."""
    steps = session.examples.steps
    try:
        for epoch in session.run():
            if epoch is not None:
                table.row(epoch)
            done = session.state.step % steps
            progress.stage(f"epoch {session.state.step // steps + 1:,}, step {done + 1:,} of {steps:,}")
    except KeyboardInterrupt:
        return True
    return False


class _Table:
    """What is printed while a session trains: its head, and a row an epoch."""

    def __init__(self, session: Session, progress: Progress, shown: bool) -> None:
        self._progress, self._shown = progress, shown
        self._since = time.perf_counter()
        self._print(wrapped(_head(session), "  "))
        held = f"  {'held out':>11}" if session.held_out else ""
        self._print(f"{'epoch':>5}  {'loss':>9}{held}  {'seconds':>8}")

    def row(self, epoch: Epoch) -> None:
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        held = f"  {measured(epoch.held_out):>11}" if epoch.held_out else ""
        self._print(f"{epoch.number:>5}  {_loss(epoch.loss):>9}{held}  {seconds:>8.2f}")

    def _print(self, line: str) -> None:
        """Prints a line until nobody reads on, as in `tpucc train … | head -2`: the files are still to be written then."""
        if self._shown:
            try:
                with self._progress.aside():
                    click.echo(line)
            except BrokenPipeError:
                self._shown = False


def _head(session: Session) -> str:
    settings, examples = session.settings, session.examples
    where = "the host, in float32" if settings.target == HOST else f"{counted(settings.cores, 'core')} of {settings.target}"
    where += f", {counted(settings.microbatches, 'microbatch', 'microbatches')}" if settings.microbatches > 1 else ""
    if (device := session.device) is not None:
        where += f", {counted(len(device.lowered.program.instructions), 'instruction')} and {duration(device.seconds)} a step"
    weights, statistics = session.divided
    sizes = [counted(elements(weights), "weight"), *([counted(elements(statistics), "statistic")] if statistics else [])]
    what = "made-up example" if examples.synthetic else "example"
    parts = (*sizes, counted(examples.count, what), f"batch {examples.batch:,}", str(session.training.optimizer))
    parts += (str(settings.numerics),) if settings.numerics.changed else ()
    return printable(f"{session.model.graph.name} on {where}: {', '.join(parts)}")


def _loss(value: float) -> str:
    return f"{value:.5f}" if abs(value) < 1000 else f"{value:.3e}"


def _ending(session: Session, model: Path, folder: Path, stopped: bool) -> str:
    """What is printed at the end: an epoch that isn't over, the cost of the cores, how to go on, and the page to open."""
    state, settings = session.state, session.settings
    parts = []
    if state.losses:
        number, mean = state.step // session.examples.steps + 1, math.fsum(state.losses) / len(state.losses)
        parts.append(f"epoch {number:,} so far: {len(state.losses):,} of {counted(session.examples.steps, 'step')}, loss {_loss(mean)}")
    if settings.cores > 1 and settings.target != HOST and session.rates.ici_bandwidth:
        parts.append(costs_text(session.step.reduced_bytes, session.core_counts, session.rates))
    if stopped:
        parts.append(f"stopped after {counted(state.step, 'step')}; this goes on to the same bits:\n  {_resuming(model, folder)}")
    weights, page = (printable(str(folder / name)) for name in ("weights.npz", "report.html"))
    parts += [f"weights: {weights}; state and history beside them", f"open {page}"]
    return "\n".join(part if "\n" in part else wrapped(part, "  ") for part in parts)


def _resuming(model: Path, folder: Path) -> str:
    """The command that goes on from the state: as it was typed, but for where it starts, where it ends, and what the state has."""
    context = click.get_current_context()
    words = []
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        parameter = next(each for each in context.command.params if each.name == name)
        if source is not ParameterSource.COMMANDLINE or name in ("model", "resume", "epochs", "steps", "seed", "weights"):
            continue
        for one in [f"{key}={each}" for key, each in value.items()] if isinstance(value, Mapping) else [value]:
            words += [parameter.opts[0], *([] if one is True else [str(one)])]
    return printable(shlex.join(["tpucc", "train", str(model), *words, "--resume", str(folder / "state.npz")]))


def costs_text(reduced: int, counts: Sequence[int], rates: Target) -> str:
    """What the all-reduce of so many bytes a step costs on these numbers of cores."""
    found = [all_reduce(reduced, count, rates) for count in counts]
    rows = [(f"{c.cores:,}", size(c.sent), f"{c.hops:,}", f"{1e6 * c.seconds:,.1f}") for c in found]
    words = f"the rates of {rates.name}, {rates.ici_bandwidth / 1e9:g} GB/s a link and {1e6 * rates.ici_hop_seconds:g} µs a hop (assumed)"
    head = f"all-reduce of {size(reduced)} a step, by formula from {words}; tpucc profile --train times the whole step"
    return f"{wrapped(head, '  ')}\n{table(('cores', 'each sends', 'hops', 'µs'), rows, left=0)}"
