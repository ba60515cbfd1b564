"""`tpucc watch MODEL.tpu`."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import click

from tpucc.artifacts import EMIT, artifacts
from tpucc.cli.messages import say
from tpucc.cli.options import FILE, compile_options, options_from
from tpucc.cli.work import held_out_accuracy
from tpucc.compilation import Compilation
from tpucc.diagnostics import counted, printable
from tpucc.explain.timed import Timed
from tpucc.files import MODELS, opened, unreadable
from tpucc.interop.sources import ONNX, files_asked, held_out_file, require_own_kind
from tpucc.watch.build import Built, Outcome, Recipe
from tpucc.watch.page import EDITOR
from tpucc.watch.server import Board, Server, open_server
from tpucc.watch.session import Listener, Session
from tpucc.watch.site import waiting

BEGINNING = 4096
"""Bytes that tell the kind of a file."""


@click.command("watch")
@click.argument("model", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="DIR", help="Where to write the files (default: build/MODEL).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port to listen on (default: a free one from 8700).")
@click.option("--open/--no-open", "opens", default=False, help="Open the page in a browser.")
@compile_options
def command(model: Path, output: Path | None, port: int | None, opens: bool, **given: Any) -> None:
    """Serve an editor of MODEL and its report on this machine, and compile again when a file of it changes."""
    _require_file(model)
    options_from(given)  # what is wrong with the options can't be mended while we run
    board = Board(waiting(model.name))
    session = Session(_recipe(model, output or Path("build") / model.stem, given), board, _heard(model))
    server = open_server(board, model, port)
    click.echo(f"{printable(str(model))}: open {server.address} in a browser; Ctrl-C ends it")
    if not EDITOR.is_file():
        say("note: the page has a plain text area; `make editor`, in a checkout of tpucc, fetches an editor with colours")
    _serve(server, session, opens)


def _require_file(model: Path) -> None:
    """Raises `UsageError` E0504 where there is no file to watch, and `CompileError` E0121 for one that no change makes a source."""
    try:
        with opened(model) as stream:
            beginning = stream.read(BEGINNING)
    except (OSError, ValueError) as error:
        raise unreadable(model, error, "E0504", suffixes=MODELS) from None
    if model.suffix.lower() != ONNX:
        require_own_kind(model, beginning)


def _serve(server: Server, session: Session, opens: bool) -> None:
    """Serves in a thread of its own and compiles in this one, until Ctrl-C."""
    try:
        with server.serving():
            if opens:
                webbrowser.open(server.address)
            session.follow(Event())
    except KeyboardInterrupt:
        click.echo("\nstopped")


def _recipe(model: Path, folder: Path, given: Mapping[str, Any]) -> Recipe:
    def draw(compilation: Compilation, runtime: Timed) -> Mapping[str, bytes]:
        return artifacts(compilation, runtime, model.stem, EMIT, held_out_accuracy(compilation, runtime, model)).files

    return Recipe(model, folder, lambda: options_from(given), draw, (held_out_file(model), *files_asked(given)))


def _heard(model: Path) -> Listener:
    """Prints a line a compilation, or its errors."""

    def heard(outcome: Outcome, seconds: float) -> None:
        if not isinstance(outcome, Built):
            say(outcome.error.render())
            return
        warnings = f"; {counted(len(outcome.warnings), 'warning')}" if outcome.warnings else ""
        click.echo(f"{time.strftime('%H:%M:%S')}  {printable(model.stem)}: {outcome.summary}{warnings} (compiled in {seconds:.1f} s)")
        if outcome.change is not None:
            click.echo(f"{' ' * 10}{outcome.change.summary}")

    return heard
