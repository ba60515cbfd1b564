"""Reading and writing files: only regular ones are read, all that belong together appear or none do, and an error says which and why.

Files of one run replace those of an earlier one together. They are written into a fresh folder inside theirs, which then gets the name
`.tpucc-commit` in one step: from there on they count as written, and are renamed to their places one after the other. A command that is
killed in between leaves that folder. The next one that reads or writes files there moves the rest first: none sees files of two runs.

A symbolic link stays one: the file that it leads to is replaced, in the same way in its own folder. Of files in several folders, each
folder's are replaced together, once all are written.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tpucc.diagnostics import Diagnostic, LimitError, UsageError, nearest, reason

MAX_FILE = 4 * 2**30
CHUNK = 2**24
PREFIX = ".tpucc-"
COMMIT = f"{PREFIX}commit"
TRIES = 100
"""Of the one step, where other commands write into the same folder."""
LISTED = 500
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM = "make room, or write to another disk; files that were there before are as they were"
MODELS = (".tpu", ".onnx")
"""How the names of models end. A person who names a file that isn't there may mean one of these."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file, open for reading. Raises `OSError`, for folders, pipes and devices too: reading one of these may never end.

    Files beside it that count as written are moved to their places first.
    """
    for folder in {path.parent, _target(path).parent}:
        with suppress(OSError):
            _move(folder)
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
        place = _target(path)
        _move(place.parent)
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


def require_regular(path: Path, mode: int) -> None:
    """Raises `OSError` for the mode of a folder, a pipe or a device: reading one may never end."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file", str(path))


def _require_replaceable(path: Path) -> None:
    """Raises `OSError` where something else than a file has a name, links followed: a rename would put a file in the place of a device."""
    try:
        require_regular(path, os.stat(path).st_mode)
    except FileNotFoundError:
        if not _target(path).parent.is_dir():
            raise OSError(errno.ENOENT, "is a link to a file in a folder that is missing", str(path)) from None


def _target(path: Path) -> Path:
    """The file that a path leads to, there or not: links of the path itself are followed, those of its folders may stay."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _place(error: OSError | ValueError, asked: Path) -> Path | str:
    """What the error is about; what was asked for when it is a part of a fresh folder, which is gone by now."""
    name = getattr(error, "filename", None)
    return asked if name is None or PREFIX in os.fsdecode(name) else os.fsdecode(name)


def _replace_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    groups: dict[Path, dict[str, bytes]] = {} if contents else {folder: {}}
    for name, content in contents.items():
        _require_replaceable(folder / name)
        place = _target(folder / name)
        groups.setdefault(place.parent, {})[place.name] = content
    with ExitStack() as stack:
        written = [(_written(stack, place, group), place, group) for place, group in groups.items()]
        for inner, place, group in written:
            _put(inner, place, group)


def _written(stack: ExitStack, folder: Path, contents: Mapping[str, bytes]) -> Path:
    """A fresh folder inside this one, with the files; it is removed with the stack."""
    _move(folder)
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
    _move(folder)


def _commit(inner: Path, folder: Path) -> None:
    """Gives fresh files the name by which they count as written; those of another command that has it are moved first."""
    for tries in range(TRIES):
        try:
            inner.rename(folder / COMMIT)
        except OSError as error:
            if error.errno not in _OCCUPIED or tries == TRIES - 1:
                raise
            _move(folder)
        else:
            return


def _move(folder: Path) -> None:
    """Moves the files that count as written to their places; another process may be doing the same, or have more written."""
    commit = folder / COMMIT
    with suppress(FileNotFoundError):
        for path in sorted(commit.iterdir()) if commit.is_dir() else ():
            with suppress(FileNotFoundError):
                path.replace(folder / path.name)
        try:
            commit.rmdir()
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise


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
