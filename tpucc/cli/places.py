"""Files that a command writes: where others are that it may not write over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import click

from tpucc.cli.labelled import held_out_file
from tpucc.diagnostics import Diagnostic, Error, UsageError, printable
from tpucc.files import read_file, require_apart
from tpucc.interop.sources import files_of

OUTPUTS = {"output", "page", "trace", "output_file", "quantized_output", "dump_dir", "json_file", "into", "resume"}
"""Arguments of commands that name what is written; every other path is read. The state that training goes on from is replaced."""
TEXTS = (".tpu", ".py", ".toml", ".asm", ".npz")
"""Files of a folder that is read, such as a lab's."""


def keep_inputs(*outputs: Path | None, more: Iterable[Path] = (), named: bool = True) -> None:
    """Raises `UsageError` E0505 where a file that is to be written is another of `outputs`, or is read: one that the command line names,
    one of `more`, or one that a source names (`named`: training doesn't read these)."""
    given = [value for name, value in click.get_current_context().params.items() if name not in OUTPUTS]
    require_apart([output for output in outputs if output is not None], chain(_inputs(given, named), more))


def _inputs(given: Sequence[Any], named: bool) -> Iterator[Path]:
    for path in _paths(given):
        yield path
        if path.is_dir():
            yield from (each for each in path.iterdir() if each.suffix in TEXTS)
        if named and path.suffix == ".tpu":
            yield held_out_file(path)
            with suppress(Error):  # the command will say what is wrong with the source
                yield from files_of(path, ("weights", "calibration", "examples"))


def _paths(value: Any) -> Iterator[Path]:
    """The paths in an argument; a text may name a file, too: a target, a stage's file."""
    match value:
        case Path():
            yield value
        case str() if value.endswith(TEXTS):
            yield Path(value)
        case tuple() | list():
            for each in value:
                yield from _paths(each)
        case dict():
            yield from _paths(tuple(value.values()))


def refuse_others(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raises `UsageError` E0528 where a file of one of these names is there with other contents: somebody made or changed it."""
    for name, content in files.items():
        place = folder / name
        if place.exists() and read_file(place) != content:
            help = "-o says where to write, over this file too"
            raise UsageError(Diagnostic("E0528", f"{printable(str(place))} is there already, with other contents", help=(help,)))
