"""Files that a command writes: where others are that it may not write over."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import click

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file, unreadable
from tpucc.interop.sources import NAMED, paths_in, require_kept

OUTPUTS = {"output", "page", "trace", "output_file", "quantized_output", "dump_dir", "json_file", "into", "resume"}
"""Arguments of commands that name what is written; every other path is read. The state that training goes on from is replaced."""


def keep_inputs(*outputs: Path | None, more: Iterable[Path] = (), named: Collection[str] = NAMED) -> None:
    """Raises `UsageError` E0505 where a file that is to be written is another of `outputs`, or is read: one that the command line names,
    one of `more`, or one that a source names by one of the keywords `named`."""
    given = [value for name, value in click.get_current_context().params.items() if name not in OUTPUTS]
    require_kept([output for output in outputs if output is not None], (*paths_in(given), *more), named)


def beside(path: Path, suffix: str) -> Path:
    """Where what is made of a file goes unless another place is named: beside it. Raises `UsageError` E0504 for `.`, which no file has as a
    name."""
    if not path.name:
        raise unreadable(path, IsADirectoryError(errno.EISDIR, "is a directory"), "E0504")
    return path.with_suffix(suffix)


def refuse_others(folder: Path, files: Mapping[str, bytes], help: str = "-o says where to write, over this file too") -> None:
    """Raises `UsageError` E0528 where a file of one of these names is there with other contents: somebody made or changed it."""
    for name, content in files.items():
        place = folder / name
        if place.exists() and read_file(place) != content:
            raise UsageError(Diagnostic("E0528", f"{printable(str(place))} is there already, with other contents", help=(help,)))
