"""Errors as the user sees them: a message and an exit status, and for faults of tpucc a file that reproduces them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from tpucc.cli.commands import group
from tpucc.cli.messages import say
from tpucc.diagnostics import Diagnostic, Error, InternalError, UsageError, listed, printable, reason
from tpucc.files import opened, why
from tpucc.plain_errors import as_error, as_plain

MAX_SOURCE = 1 << 20
SHOWN = 10
"""Of the diagnostics of one error, so many are printed."""
ARCHIVE = "a student's archive has the answers of the term that it was packed for: lab check with another --term has none"


def report_failure(error: Exception, arguments: Sequence[str]) -> int:
    """Prints an error to standard error, or with --json as JSON to standard output; returns the exit status.

    `TPUCC_DEBUG=1` lets faults through as tracebacks.
    """
    shown = known(error)
    if isinstance(shown, InternalError) and os.environ.get("TPUCC_DEBUG") == "1":
        raise error
    if "--json" in arguments and list(arguments[:1]) != ["lab"]:  # there it names a file
        print_json(as_plain(shown))
    else:
        say(shown.render(SHOWN))
        if (more := len(shown.diagnostics) - SHOWN) > 0:
            say(f"\n… and {more:,} more{'; --json prints all' if _has_json(arguments) else ''}")
    if isinstance(shown, InternalError):
        if files := [argument for argument in arguments if argument.endswith(".py")]:
            say(f"help: does it happen without {listed(files)}? code that ran here may have changed what tpucc uses")
        say(f"what reproduces it is in {_reproducer(error, arguments)}")
    return shown.exit_status


def _has_json(arguments: Sequence[str]) -> bool:
    """Whether the command that failed has the option --json."""
    command = group.get_command(click.Context(group), arguments[0]) if arguments else None
    return command is not None and any("--json" in parameter.opts for parameter in command.params)


def known(error: Exception) -> Error:
    """The error; another exception as one of ours."""
    if stub := _stub(error):
        help = "tpucc lab check uses what you write; commands that compile take your file by --replace; all others need a whole tpucc"
        return UsageError(Diagnostic("E0553", f"this copy of tpucc has no solution of {stub}", help=(help, ARCHIVE)))
    if isinstance(error, OSError) and error.filename is not None:
        return UsageError(Diagnostic("E0504", f"can't use {printable(os.fsdecode(error.filename))[:200]}: {reason(error)}"))
    return as_error(error)


def _stub(error: BaseException | None) -> str:
    """What a lab asks for, where a solution was taken out of the package (see `labs.strip`) and its stub was called; else nothing."""
    seen = set[int]()
    while error is not None and id(error) not in seen:  # code of the user's may make a circle of causes
        seen.add(id(error))
        if isinstance(error, NotImplementedError) and re.match(r"lab \d+: ", str(error)):
            return str(error)
        error = error.__cause__ or error.__context__
    return ""


def print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _reproducer(error: Exception, arguments: Sequence[str]) -> str:
    """Writes the command, the files it names, the versions and the traceback into one text file; returns its path."""
    import shlex  # only a fault needs it

    parts = [
        f"tpucc {shlex.join(arguments)}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        "".join(traceback.format_exception(error)),
        *(_file(Path(a)) for a in arguments if a.endswith((".tpu", ".graph", ".asm", ".toml", ".py"))),
    ]
    text = "\n\n".join(parts)
    name = f"tpucc-fault-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}.txt"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            (folder / name).write_text(text, "utf-8", errors="replace")
        except OSError:
            continue
        return str(folder / name)
    return "no file: neither the current folder nor the temporary one can be written"


def _file(path: Path) -> str:
    try:
        with opened(path) as stream:
            text = stream.read(MAX_SOURCE).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        text = f"({why(error)})"
    return f"--- {path.name}\n{text}"
