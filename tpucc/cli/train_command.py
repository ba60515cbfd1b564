"""`tpucc train MODEL.tpu`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tpucc.cli.failures import print_json
from tpucc.cli.messages import say
from tpucc.cli.options import FILE, json_option, option
from tpucc.cli.progress import Progress
from tpucc.diagnostics import Source, counted, printable
from tpucc.files import write_files
from tpucc.interop.sources import read_source
from tpucc.training.session import EPOCHS, HOST, Epoch, Session, Settings
from tpucc.training.start import started

INTERRUPTED = 130
"""The exit status of a command that the user has stopped."""


@click.command("train")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="DIR", help="Where to write the files (default: build/MODEL).")
@click.option("--epochs", type=click.IntRange(0), metavar="N", help=f"Epochs to train, counted from --resume (default {EPOCHS}).")
@click.option("--steps", type=click.IntRange(0), metavar="N", help="Steps to train, counted from --resume, in place of epochs.")
@click.option("--target", default=HOST, show_default=True, metavar="NAME", help="Whose arithmetic: host (float32), or a machine: tpu_v2.")
@click.option("--cores", type=int, default=1, show_default=True, help="Cores that share the batch.")
@click.option("--microbatches", type=int, default=1, show_default=True, help="Parts that each core makes of its share, one after another.")
@click.option("--examples", type=FILE, metavar="X.npz", help="Train on these, not on those that the source names.")
@click.option("--held-out", type=FILE, metavar="X.npz", help="Measure on these rows and labels (default: MODEL_test.npz, if it is there).")
@click.option("--weights", type=FILE, metavar="W.npz", help="Begin with these weights, not with new ones.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Draws weights, order and dropout.")
@click.option("--resume", type=FILE, metavar="state.npz", help="Go on from this state.")
@option("params")
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(model: Path, output: Path | None, params: Mapping[str, str], as_json: bool, quiet: bool, **given: Any) -> int:
    """Train MODEL by its `train`: write the weights, the state and the history, and print loss and held-out accuracy an epoch.

    Ctrl-C stops after the current step and writes the state, from which --resume goes on to the same bits.
    """
    source = read_source(model)
    with Progress(not quiet and not as_json) as progress:
        progress.stage("make the step graph")
        session = started(source, model.parent, model.stem, params, Settings(**given))
        folder = output or Path("build") / model.stem
        table = _Table(session, progress, shown=not quiet and not as_json)
        _warn(session, source, quiet)
        stopped = _run(session, table, progress)
    write_files(folder, session.files())
    if as_json:
        print_json(session.history | {"files": [str(folder / name) for name in session.files()]})
    elif not quiet:
        click.echo(table.ending(folder, stopped))
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


def _warn(session: Session, source: Source, quiet: bool) -> None:
    if quiet:
        return
    for warning in session.model.warnings:
        say(warning.render(source))
    for note in session.notes:
        say(f"note: {note}")


class _Table:
    """What is printed of a training: its head, a row an epoch, and where the files are."""

    def __init__(self, session: Session, progress: Progress, shown: bool) -> None:
        self._session, self._progress, self._shown = session, progress, shown
        self._since = time.perf_counter()
        self._print(_head(session))
        held = "held out" if session.held_out else ""
        self._print(f"{'epoch':>5}  {'loss':>9}  {held:>9}  {'seconds':>8}")

    def row(self, epoch: Epoch) -> None:
        now = time.perf_counter()
        seconds, self._since = now - self._since, now
        self._print(f"{epoch.number:>5}  {epoch.loss:>9.5f}  {_measured(epoch.held_out):>9}  {seconds:>8.2f}")

    def ending(self, folder: Path, stopped: bool) -> str:
        state = self._session.state
        words = f"stopped after {counted(state.step, 'step')}; --resume {folder / 'state.npz'} goes on" if stopped else ""
        return printable("\n".join(filter(None, (words, f"weights: {folder / 'weights.npz'}; state and history beside it"))))

    def _print(self, line: str) -> None:
        if self._shown:
            with self._progress.aside():
                click.echo(printable(line.rstrip()))


def _head(session: Session) -> str:
    settings, examples = session.settings, session.examples
    where = "the host, in float32" if settings.target == HOST else f"{counted(settings.cores, 'core')} of {settings.target}"
    where += f", {counted(settings.microbatches, 'microbatch')}" if settings.microbatches > 1 else ""
    count = sum(array.size for array in session.trained.values())
    optimizer = session.training.optimizer
    assert optimizer is not None
    words = ", ".join(f"{name}={value:g}" for name, value in optimizer.parameters)
    what = "made-up example" if examples.made_up else "example"
    parts = (counted(count, "weight"), counted(examples.count, what), f"batch {examples.batch:,}", f"{optimizer.name}({words})")
    return f"{session.model.graph.name} on {where}: {', '.join(parts)}"


def _measured(found: Mapping[str, float]) -> str:
    if "accuracy" in found:
        return f"{found['accuracy']:.2%}".replace("%", " %")
    return f"{found['rmse']:.5g}" if "rmse" in found else ""
