"""Errors as the user sees them: a message and an exit status, and for faults of tpucc a file that reproduces them."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from tpucc.diagnostics import Error, InternalError, LimitError, reason

MAX_SOURCE = 1 << 20


def report_failure(error: Exception, arguments: Sequence[str]) -> int:
    """Prints an error to standard error; returns the exit status. `TPUCC_DEBUG=1` lets faults through as tracebacks."""
    if isinstance(error, MemoryError):
        click.echo("error E0613: out of memory; a smaller batch needs less", err=True)
        return LimitError.exit_status
    if isinstance(error, Error) and not isinstance(error, InternalError):
        show_error(error)
        return error.exit_status
    if os.environ.get("TPUCC_DEBUG") == "1":
        raise error
    if isinstance(error, InternalError):
        show_error(error)
    else:
        click.echo(f"error E0900: a fault in tpucc: {type(error).__name__}: {error}", err=True)
    click.echo(f"what reproduces it is in {_reproducer(error, arguments)}", err=True)
    return InternalError.exit_status


def show_error(error: Error) -> None:
    """Prints an error's messages to standard error."""
    click.echo(_painted(error.render()), err=True)


def _painted(text: str) -> str:
    """The message with its heads and carets coloured; click drops colours where they don't belong."""
    if os.environ.get("NO_COLOR"):
        return text
    return "\n".join(_painted_line(line) for line in text.split("\n"))


def _painted_line(line: str) -> str:
    if ": error E" in line or line.startswith("error "):
        return click.style(line, bold=True)
    if line.lstrip().startswith("|"):
        return click.style(line, fg="red")
    return click.style(line, fg="cyan") if line.startswith("help:") else line


def _reproducer(error: Exception, arguments: Sequence[str]) -> str:
    """Writes the command, the files it names, the versions and the traceback into one text file; returns its path."""
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
        with path.open("rb") as stream:
            text = stream.read(MAX_SOURCE).decode("utf-8", "replace")
    except OSError as error:
        text = f"({reason(error)})"
    return f"--- {path.name}\n{text}"
