"""Reading and writing files: all appear or none do, and an error says which file and why."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tpucc.diagnostics import Diagnostic, LimitError, UsageError, reason

MAX_FILE = 4 * 2**30
PREFIX = ".tpucc-"


def read_file(path: Path) -> bytes:
    """The bytes of a file. Raises `UsageError` when it is missing or unreadable, `LimitError` when it is absurdly large."""
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE:
                raise LimitError(Diagnostic("E0611", f"{path} is larger than {MAX_FILE:,} bytes"))
            return stream.read()
    except OSError as error:
        raise UsageError(Diagnostic("E0504", f"can't read {path}: {reason(error)}")) from None


def write_file(path: Path, content: bytes) -> None:
    """Writes one file: beside its place first, then renamed."""
    write_files(path.parent, {path.name: content})


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes all files into `folder`, which is made when it is missing, or none.

    They are written into a fresh folder beside their places first. A new folder then gets its name in one step; in an existing one the
    files are renamed one after the other. Raises `UsageError` when that can't be done (not writable, a folder in the place of a file,
    a full disk); earlier files are intact then.
    """
    try:
        if folder.is_dir():
            _replace_files(folder, contents)
        else:
            _make_folder(folder, contents)
    except OSError as error:
        raise UsageError(Diagnostic("E0505", f"can't write {_place(error, folder)}: {reason(error)}")) from None


def _place(error: OSError, folder: Path) -> Path | str:
    """What the error is about; the folder that was asked for when it is a part of the fresh one, which is gone by now."""
    return folder if error.filename is None or PREFIX in str(error.filename) else os.fsdecode(error.filename)


def _replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name in contents:
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory", str(folder / name))
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder, ignore_cleanup_errors=True) as fresh:
        _fill(Path(fresh), contents)
        for name in contents:
            (Path(fresh) / name).replace(folder / name)


def _make_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder.parent, ignore_cleanup_errors=True) as fresh:
        inner = Path(fresh) / "files"
        inner.mkdir()
        _fill(inner, contents)
        inner.rename(folder)


def _fill(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
