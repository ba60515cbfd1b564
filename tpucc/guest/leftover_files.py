"""Files that a submission leaves where every user may write: a jail of file modes takes them away before the next one starts."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from tpucc.diagnostics import Diagnostic, UsageError, printable, reason

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
MOST = 1_000_000
"""Files and folders that are taken away."""


class Left(UsageError):
    """What a submission left is still there, and the next one could read it: nothing more is graded."""

    def __init__(self, what: str) -> None:
        super().__init__(Diagnostic("E0552", what, help=("remove it before you grade the next submission, which could read it",)))


def take_away(user: int, folders: Sequence[str] = FOLDERS) -> None:
    """Removes all that is a user's in these folders, and in those folders of others' in them where all users may write. Raises `Left`."""
    for folder in _open_to_all(user, folders):
        try:
            if names := [entry.name for entry, seen in _entries(folder) if seen.st_uid == user]:
                _remove(folder, names)
        except OSError as error:
            raise Left(f"what a submission left in {printable(folder)} can't be removed: {reason(error)}") from None


def _open_to_all(user: int, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        yield folder
        found = _entries(folder)
        yield from (entry.path for entry, seen in found if stat.S_ISDIR(seen.st_mode) and seen.st_mode & 0o002 and seen.st_uid != user)


def _entries(folder: str) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    """What is in a folder; nothing where there is no such folder. Others' files come and go meanwhile."""
    found = list[tuple[os.DirEntry[str], os.stat_result]]()
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((entry, entry.stat(follow_symlinks=False)))
    return found


def _remove(folder: str, names: Sequence[str]) -> None:
    """Removes files and folders, however deep: every folder is moved into one of the grader's before it is opened, so that none is reached
    by a long path, or by one that a submission could change. Raises `OSError`, and `Left` for more than `MOST`."""
    numbers, waiting = count(1), list[str]()
    own = tempfile.mkdtemp(prefix="tpucc-left-", dir=folder)
    place, source = (os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) for path in (own, folder))

    def take(names: Sequence[str], source: int) -> None:
        for name in names:
            if (number := next(numbers)) > MOST:
                raise Left(f"a submission left more than {MOST:,} files and folders in {printable(folder)}")
            os.rename(name, str(number), src_dir_fd=source, dst_dir_fd=place)
            if stat.S_ISDIR(os.stat(str(number), dir_fd=place, follow_symlinks=False).st_mode):
                waiting.append(str(number))
            else:
                os.unlink(str(number), dir_fd=place)

    try:
        take(names, source)
        while waiting:
            name = waiting.pop()
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            try:
                take(os.listdir(inner), inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=place)
    finally:
        os.close(place)
        os.close(source)
        with suppress(OSError):
            Path(own).rmdir()
