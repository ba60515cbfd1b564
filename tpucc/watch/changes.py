"""What counts as a change: other bytes in a file that a compilation reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tpucc.driver import front_end
from tpucc.files import inside, opened
from tpucc.interop.sources import read_source
from tpucc.options import Options

SMALL = 1 << 20
"""Files up to this many bytes are read at every look; a larger one only when its size, its inode or its time of change is another."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A file as it was at a look: `stamp` is its time of change in nanoseconds, its size and its inode."""

    stamp: tuple[int, int, int]
    digest: bytes


ABSENT = Mark((0, 0, 0), b"")


def look(paths: Iterable[Path], before: Mapping[Path, Mark]) -> dict[Path, Mark]:
    """The marks of these files. `before` is the look before, which saves reading large files again."""
    return {path: _mark(path, before.get(path, ABSENT)) for path in paths}


def differ(one: Mapping[Path, Mark], other: Mapping[Path, Mark]) -> bool:
    """Whether a file has come, gone, or has other bytes. A new time of change alone is no change."""
    return {path: mark.digest for path, mark in one.items()} != {path: mark.digest for path, mark in other.items()}


def named_files(path: Path, options: Options) -> Iterator[Path]:
    """The archives that the source at `path` names, there or not. Raises what reading and elaborating it raises."""
    model = front_end(read_source(path), options)
    folder = path.parent
    for name in (model.weights, model.calibration):
        if name and "\0" not in name and inside(folder / name, folder):
            yield folder / name


def _mark(path: Path, before: Mark) -> Mark:
    """The mark of one file. What is no regular file is never opened: reading a pipe may not end."""
    try:
        info = path.stat()
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if info.st_size > SMALL and stamp == before.stamp:
            return before
        with opened(path) as stream:
            return Mark(stamp, hashlib.file_digest(stream, "sha256").digest())
    except OSError:
        return ABSENT
