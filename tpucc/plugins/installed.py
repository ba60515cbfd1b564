"""Passes of installed packages, by their entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tpucc.passes.base import Pass
from tpucc.plugins.brought import brought, made_by
from tpucc.plugins.code import user_code

GROUP = "tpucc.passes"


def installed_passes() -> Iterator[Pass]:
    """The passes of installed packages, by the entry-point group `tpucc.passes`. What is installed runs in this process."""
    if not any(map(_names_passes, map(Path, sys.path))):
        return
    from importlib.metadata import entry_points  # with what it imports, a thirtieth of the time of `tpucc check`

    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        cls = user_code(f"the package of the pass {entry.name}", None).call(entry.load)
        yield brought(made_by(cls), entry.value)


def _names_passes(place: Path) -> bool:
    """Whether a package in a folder of `sys.path` may have passes; of an archive there it isn't known, nor of what can't be read."""
    if not place.is_dir():
        return place.is_file()
    try:
        return _some_names_passes(place.absolute(), place.stat().st_mtime_ns)
    except OSError:
        return True


@lru_cache(maxsize=64)
def _some_names_passes(place: Path, changed: int) -> bool:
    """Whether a package in this folder has passes. To install or remove one changes the folder, and so `changed`. Raises `OSError`."""
    files = (place / name / "entry_points.txt" for name in os.listdir(place) if name.lower().endswith("-info"))
    return any(GROUP.encode() in file.read_bytes() for file in files if file.is_file())
