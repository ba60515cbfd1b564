"""Files that a command writes beside others without being told their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file


def refuse_others(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raises `UsageError` E0528 where a file of one of these names is there with other contents: somebody made or changed it."""
    for name, content in files.items():
        place = folder / name
        if place.exists() and read_file(place) != content:
            help = "-o says where to write, over this file too"
            raise UsageError(Diagnostic("E0528", f"{printable(str(place))} is there already, with other contents", help=(help,)))
