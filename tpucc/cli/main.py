"""The command line: finds the command, runs it, and turns errors into messages and exit statuses."""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from tpucc.cli.commands import group
from tpucc.cli.streams import discard, unread


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status; as an entry point, exits with it."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 Python has None where the caller closed a stream
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if arguments is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it: no arrow or µ is a fault where there is none
    if arguments is None:
        signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        status = _status(list(arguments if arguments is not None else sys.argv[1:]))
    except OSError as error:
        status = _unwritable(error)
    if arguments is None:
        _leave(status)
    return status


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """SIGTERM stops a command as Ctrl-C does: what it has done is kept, and what it has started ends. Also where Ctrl-C is ignored, as in
    a shell's background."""
    pressed = signal.getsignal(signal.SIGINT)
    (pressed if callable(pressed) else signal.default_int_handler)(number, frame)


def _leave(status: int) -> NoReturn:
    gc.freeze()  # Python would look for cycles among all that it frees at its end
    sys.exit(status)


def _status(arguments: list[str]) -> int:
    try:
        status = _invoke(arguments)
        sys.stdout.flush()
        return status
    except click.ClickException as error:
        with unread():
            (_elsewhere(error) if isinstance(error, click.NoSuchOption) else error).show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        with unread():
            click.echo("interrupted", err=True)
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in UNWRITABLE:
            raise
        return _failed(error, arguments)


ELSEWHERE = {
    **dict.fromkeys(("--batch", "--batch-size"), ("-D", "the batch is a param of the source: -D batch=…")),
    **dict.fromkeys(("--rate", "--lr", "--learning-rate", "--optimizer"), ("--epochs", "the source says it: optimizer adam(rate=…)")),
    **dict.fromkeys(("--optimise", "--optimize", "--level"), ("-O", "the level is -O 0, -O 1 or -O 2")),
}
"""Options that other compilers and trainers have: an option of the commands in which they mean something, and where that is said here."""


def _elsewhere(error: click.NoSuchOption) -> click.ClickException:
    """The error of an unknown option; of one that other tools have, with the place where that is said here."""
    own, words = ELSEWHERE.get(error.option_name, ("", ""))
    if error.ctx is None or not any(own in option.opts for option in error.ctx.command.params):
        return error
    return click.UsageError(f"{error.ctx.info_name} has no option {error.option_name}: {words}", error.ctx)


def _invoke(arguments: list[str]) -> int:
    """The command's status. Click's own `main` would make a closed pipe an exit with status 1."""
    if "_TPUCC_COMPLETE" in os.environ:
        group.main(arguments, "tpucc")
    try:
        with group.make_context("tpucc", arguments) as context:
            result = group.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return result if isinstance(result, int) else 0


UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""The exceptions of writing to a stream; for files we raise errors of our own, which name them."""


def _unwritable(error: OSError) -> int:
    """Standard output or standard error can't be written: a reader that has seen enough, as in `tpucc ops | head -1`, isn't an error."""
    discard(sys.stdout)
    discard(sys.stderr)
    if error.errno == errno.EPIPE:
        return 0
    from tpucc.diagnostics import reason

    with unread():
        click.echo(f"error E0505: can't write the results: {reason(error)}", err=True)
    return 2


def _failed(error: Exception, arguments: list[str]) -> int:
    """Reports an error and returns its exit status, which is the same where nobody can read the report."""
    from tpucc.cli.failures import known, report_failure

    try:
        return report_failure(error, arguments)
    except OSError as unwritable:  # with --json the report is a result
        if unwritable is error:  # TPUCC_DEBUG=1
            raise
        _unwritable(unwritable)
        return known(error).exit_status
