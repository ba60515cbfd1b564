"""`tpucc debug MODEL.tpu|PROGRAM.tpub`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tpucc.cli.debug_session import Done, Session, Wrong
from tpucc.cli.options import FILE, compile_options, like_option
from tpucc.cli.progress import Progress
from tpucc.cli.row_program import in_rows, inputs_of
from tpucc.cli.run_command import first_inputs_of
from tpucc.cli.work import executable_from
from tpucc.diagnostics import printable
from tpucc.explain.debugger import Debugger, Runnable
from tpucc.explain.tables import wrapped
from tpucc.runtime.batches import Arrays

PROMPT = "(tpucc) "


@click.command("debug")
@click.argument("model", type=FILE)
@compile_options
@like_option
@click.option("--input", "input_file", type=FILE, metavar="X.npz", help="An array for each input of the model, by name.")
@click.option("--quiet", is_flag=True, help="No warnings, no progress.")
def command(model: Path, input_file: Path | None, quiet: bool, **given: Any) -> int:
    """Run MODEL step by step: forwards, back, to breakpoints, and look into the memories.

    Without --input it runs on the calibration inputs, or on random ones. MODEL may be a program or a listing (.asm) for the training
    machine, as train.tpub of `tpucc compile --train`. Commands are read from standard input: `help` lists them. Where
    that is no terminal, they are printed with their answers, and the exit status is 1 if one was wrong.
    """
    with Progress(not quiet) as progress:
        runnable: Runnable
        part: Arrays
        if (rows := in_rows(model)) is not None:
            runnable, (part, origin) = rows, inputs_of(rows, input_file)
        else:
            exe = executable_from(model, given, quiet, progress, of_accuracy=False)
            runnable, (part, origin) = exe.runtime, first_inputs_of(exe, input_file)
        session = Session(Debugger(runnable, part))
    program = runnable.program
    cores = f", the first of {program.cores} cores" if program.cores > 1 else ""
    click.echo(wrapped(printable(f"{program.name} on {program.target.name}{cores}, on {origin}"), "  "))
    click.echo(session.where())
    return _converse(session)


def _converse(session: Session) -> int:
    """Answers commands to the end of the input; whether one was wrong where nobody could type another."""
    alone, status = sys.stdin is None or not sys.stdin.isatty(), 0
    for line in _lines(alone):
        try:
            answer = session.answer(line)
        except Done:
            break
        except Wrong as wrong:
            answer, status = str(wrong), int(alone)
        if answer:
            click.echo(answer)
    return status


def _lines(alone: bool) -> Iterator[str]:
    if alone:
        for line in sys.stdin or ():
            click.echo(f"{PROMPT}{printable(line.strip())}")
            yield line
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 arrow keys bring former lines back
    click.echo("`help` lists the commands")
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            click.echo()
            return
