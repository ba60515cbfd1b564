"""Reading files: only regular ones are read, none is of two runs of a command, and an error says which file and why.

Files that a command writes together count as written once the folder that has them is named `.tpucc-commit` (`output_files.py`). Who reads
a file beside one moves the rest first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path

from tpucc.diagnostics import Diagnostic, LimitError, UsageError, nearest, reason

MAX_FILE = 4 * 2**30
CHUNK = 2**24
PREFIX = ".tpucc-"
COMMIT = f"{PREFIX}commit"
LISTED = 500
OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
MODELS = (".tpu", ".onnx")
"""How the names of models end. A person who names a file that isn't there may mean one of these."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file, open for reading. Raises `OSError`, for folders, pipes and devices too: reading one of these may never end.

    Files beside it that count as written are moved to their places first.
    """
    for folder in {path.parent, target_of(path).parent}:
        with suppress(OSError):
            finish_writing(folder)
    require_regular(path, os.stat(path).st_mode)
    with os.fdopen(os.open(path, _FLAGS), "rb") as stream:
        require_regular(path, os.fstat(stream.fileno()).st_mode)  # it may have been replaced just now
        yield stream


def inside(path: Path, folder: Path) -> bool:
    """Whether a path stays in a folder, all links followed; one whose links lead in a circle does, and can't be opened."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def read_file(path: Path, code: str = "E0504", what: str = "", most: int = MAX_FILE, suffixes: Sequence[str] = ()) -> bytes:
    """The bytes of a file. Raises `UsageError` of `code` when it is missing or unreadable, `LimitError` E0611 when it has more than `most`
    bytes; `what` it is stands in the message, and `suffixes` are those of files that may be meant."""
    try:
        with opened(path) as stream:
            data = _read(stream, most)
            if data is not None:
                return data
    except (OSError, ValueError) as error:
        raise unreadable(path, error, code, what, suffixes=suffixes) from None
    raise LimitError(Diagnostic("E0611", f"{path} is larger than {most:,} bytes"))


def _read(stream: BufferedReader, most: int) -> bytes | None:
    """The rest of a file, or None when that is more than `most` bytes. Python reserves memory for as much as it is asked to read."""
    if os.fstat(stream.fileno()).st_size > most:
        return None
    parts, left = [], most + 1
    while part := stream.read(min(CHUNK, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts) if left else None


def unreadable(
    path: Path, error: OSError | ValueError, code: str, what: str = "", help: str = "", suffixes: Sequence[str] = ()
) -> UsageError:
    """The error of a file that can't be read. If it is missing, a file that is surely meant is offered: of its name with one of `suffixes`,
    or in the folder that has its name or a near one; else there is `help`, and without it a file whose name is near."""
    if isinstance(error, FileNotFoundError):
        meant = _suffixed(path, suffixes) or _elsewhere(path)
        near = meant or (None if help else _near(path, suffixes))
        help = f"did you mean {near}?" if near else help
    elif not help and isinstance(error, IsADirectoryError):
        inside = [path / name for name in _files_in(path) if Path(name).suffix in suffixes]
        help = f"name a file in it, as {inside[0]}" if inside else "name a file in it"
    return UsageError(Diagnostic(code, f"can't read {what}{path}: {why(error)}", help=(help,)))


def _suffixed(path: Path, suffixes: Sequence[str]) -> Path | None:
    """The file that is there if a suffix is added to the path, or takes the place of its own."""
    places = [path.with_name(stem + suffix) for stem in dict.fromkeys((path.name, path.stem)) for suffix in suffixes] if path.name else []
    return next((place for place in places if os.path.isfile(place)), None)


def _elsewhere(path: Path) -> Path | None:
    """The file of the same name in a folder that may be meant: for `iris.tpu`, `iris/iris.tpu`, as `tpucc new` writes a folder; for
    `iriss/iris.tpu` the same."""
    folder = path.parent
    places = [folder / path.stem] if path.name else []
    if not os.path.isdir(folder) and (found := nearest(folder.name, _folders_in(folder.parent))):
        places.append(folder.parent / found)
    return next((place / path.name for place in places if os.path.isfile(place / path.name)), None)


def _near(path: Path, suffixes: Sequence[str]) -> Path | None:
    """The file in the same folder whose name is nearest, one of the same kind first, then one of `suffixes` by what stands before the
    suffix. A file of passes needs no name of a pass behind it."""
    names = _files_in(path.parent)
    alike = {Path(other).stem: other for other in names if Path(other).suffix.lower() == path.suffix.lower()}
    stems = {Path(other).stem: other for other in names if Path(other).suffix.lower() in suffixes}
    others = [other for other in names if other not in alike.values()]  # equal suffixes make names alike that aren't
    begins = (other for other in names if path.name.startswith(f"{other}:"))
    found = alike.get(nearest(path.stem, alike)) or stems.get(nearest(path.stem, stems)) or nearest(path.name, others) or next(begins, "")
    return path.parent / found if found else None


def _files_in(folder: Path) -> list[str]:
    return [entry.name for entry in _entries(folder) if os.path.isfile(entry)]


def _folders_in(folder: Path) -> list[str]:
    return [entry.name for entry in _entries(folder) if os.path.isdir(entry)]


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, in order of names, some hundreds at most."""
    try:
        return sorted(islice(folder.iterdir(), LISTED))
    except (OSError, ValueError):
        return []


def why(error: OSError | ValueError) -> str:
    """Why a file can't be had. A `ValueError` is Python's for a name with a zero character."""
    return reason(error) if isinstance(error, OSError) else str(error)


def require_regular(path: Path, mode: int) -> None:
    """Raises `OSError` for the mode of a folder, a pipe or a device: reading one may never end."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file", str(path))


def target_of(path: Path) -> Path:
    """The file that a path leads to, there or not: links of the path itself are followed, those of its folders may stay."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def finish_writing(folder: Path) -> None:
    """Moves the files that count as written to their places; another process may be doing the same, or have more written."""
    commit = folder / COMMIT
    with suppress(FileNotFoundError):
        for path in sorted(commit.iterdir()) if commit.is_dir() else ():
            with suppress(FileNotFoundError):
                path.replace(folder / path.name)
        try:
            commit.rmdir()
        except OSError as error:
            if error.errno not in OCCUPIED:
                raise
