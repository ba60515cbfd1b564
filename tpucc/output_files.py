"""Writing files: all that belong together appear or none do, and an error says which and why.

Files of one run replace those of an earlier one together. They are written into a fresh folder inside theirs, which then gets the name
`.tpucc-commit` in one step: from there on they count as written, and are renamed to their places one after the other. A command that is
killed in between leaves that folder. The next one that reads or writes files there moves the rest first: none sees files of two runs.

A symbolic link stays one: the file that it leads to is replaced, in the same way in its own folder. Of files in several folders, each
folder's are replaced together, once all are written.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.files import COMMIT, OCCUPIED, PREFIX, finish_writing, require_regular, target_of, why

TRIES = 100
"""Of the one step, where other commands write into the same folder."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM = "make room, or write to another disk; files that were there before are as they were"


def require_apart(outputs: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Raises `UsageError` E0505 where a file that a command writes is one that it reads, or two that it writes are one: links followed."""
    for place, output in enumerate(outputs):
        if any(_same(output, other) for other in outputs[:place]):
            raise _overlapping(output, "another output has that place")
    there = [output for output in outputs if output.exists()]
    for known in inputs if there else ():
        for output in there:
            if _same(output, known):
                raise _overlapping(output, "it is an input")


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one of them isn't there, so that they may only become one file
        return os.path.realpath(one) == os.path.realpath(other)


def _overlapping(path: Path, why: str) -> UsageError:
    return UsageError(Diagnostic("E0505", f"can't write {path}: {why}", help=("name another file",)))


def write_file(path: Path, content: bytes) -> None:
    """Writes one file: beside its place first, then renamed."""
    write_files(path.parent, {path.name: content})


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes all files into `folder`, which is made when it is missing, or none.

    A new folder gets its name in one step; in an existing one all files are replaced together (see above). Raises `UsageError` when that
    can't be done (not writable, a folder or a device in the place of a file, a full disk); earlier files are intact then.
    """
    try:
        if folder.is_dir():
            _replace_files(folder, contents)
        else:
            _make_folder(folder, contents)
    except (OSError, ValueError) as error:
        alone = len(contents) == 1 and folder.is_dir()
        raise unwritable(error, folder / next(iter(contents)) if alone else folder) from None


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A stream into a file that gets its name at the end, in one step: an error before leaves what was there. Raises as `write_files`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _require_replaceable(path)
        place = target_of(path)
        finish_writing(place.parent)
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place.parent, ignore_cleanup_errors=True) as fresh:
            with (Path(fresh) / place.name).open("wb") as stream:
                yield stream
            (Path(fresh) / place.name).replace(place)
    except (OSError, ValueError) as error:
        raise unwritable(error, path) from None


def unwritable(error: OSError | ValueError, place: Path) -> UsageError:
    """The error of a file or a folder that can't be written; of what the error itself names, where that is no part of a fresh folder."""
    help = _ROOM if getattr(error, "errno", None) in _FULL else "name another place, with -o or --output where the command has it"
    return UsageError(Diagnostic("E0505", f"can't write {_place(error, place)}: {why(error)}", help=(help,)))


def _require_replaceable(path: Path) -> None:
    """Raises `OSError` where something else than a file has a name, links followed: a rename would put a file in the place of a device."""
    try:
        require_regular(path, os.stat(path).st_mode)
    except FileNotFoundError:
        if not target_of(path).parent.is_dir():
            raise OSError(errno.ENOENT, "is a link to a file in a folder that is missing", str(path)) from None


def _place(error: OSError | ValueError, asked: Path) -> Path | str:
    """What the error is about; what was asked for when it is a part of a fresh folder, which is gone by now."""
    name = getattr(error, "filename", None)
    return asked if name is None or PREFIX in os.fsdecode(name) else os.fsdecode(name)


def _replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    groups: dict[Path, dict[str, bytes]] = {} if contents else {folder: {}}
    for name, content in contents.items():
        _require_replaceable(folder / name)
        place = target_of(folder / name)
        groups.setdefault(place.parent, {})[place.name] = content
    with ExitStack() as stack:
        written = [(_written(stack, place, group), place, group) for place, group in groups.items()]
        for inner, place, group in written:
            _put(inner, place, group)


def _written(stack: ExitStack, folder: Path, contents: Mapping[str, bytes]) -> Path:
    """A fresh folder inside this one, with the files; it is removed with the stack."""
    finish_writing(folder)
    fresh = stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder, ignore_cleanup_errors=True))
    inner = Path(fresh) / "files"
    inner.mkdir()
    _fill(inner, contents)
    return inner


def _put(inner: Path, folder: Path, names: Collection[str]) -> None:
    """Puts all fresh files in their places, together; a single one in one step."""
    if len(names) == 1:
        (name,) = names
        (inner / name).replace(folder / name)
        return
    _commit(inner, folder)
    finish_writing(folder)


def _commit(inner: Path, folder: Path) -> None:
    """Gives fresh files the name by which they count as written; those of another command that has it are moved first."""
    for tries in range(TRIES):
        try:
            inner.rename(folder / COMMIT)
        except OSError as error:
            if error.errno not in OCCUPIED or tries == TRIES - 1:
                raise
            finish_writing(folder)
        else:
            return


def _make_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", error.filename) from None
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder.parent, ignore_cleanup_errors=True) as fresh:
        inner = Path(fresh) / "files"
        inner.mkdir()
        _fill(inner, contents)
        try:
            inner.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            _replace_files(folder, contents)  # another command has made it meanwhile


def _fill(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
