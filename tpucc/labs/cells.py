"""The folder that a submission's process sees: a copy of tpucc without reference solutions, and the submission."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import count, islice
from pathlib import Path
from typing import IO

from tpucc.diagnostics import Diagnostic, InternalError, UsageError, printable
from tpucc.guest import jails
from tpucc.guest.jails import FIRST_USER, NONE, Cell
from tpucc.guest.serving import is_python
from tpucc.labs.child import START
from tpucc.labs.strip import copy_stripped

PREFIX, OLD = "tpucc-lab-", 24 * 60 * 60
"""The beginning of a workshop's name, and the seconds after which it is nobody's: no grader takes as long."""
USERS = 4000
"""How many numbers children's users are taken from."""
_TURNS = count()


@contextmanager
def workshop(modules: Sequence[str]) -> Iterator[Path]:
    """A folder with what all cells share, warm: the modules that children import are compiled. Gone afterwards, and with it what graders
    that were killed left a day ago."""
    clean()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        copy_stripped(jails.grader_folder(), folder / "lib")
        (folder / "root").mkdir()
        _warm(Cell(folder, "", folder), modules)
        (folder / "cells").mkdir()
        _readable(folder)
        for closed in (folder, folder / "cells"):
            os.chmod(closed, 0o711)  # no child learns the names of others' cells
        yield folder


def clean() -> None:
    """Takes away the workshops of this user that no grader can still use: those that are a day old."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            own = os.name != "posix" or found.st_uid == os.getuid()
            if stat.S_ISDIR(found.st_mode) and own and time.time() - found.st_mtime > OLD:
                shutil.rmtree(folder)


def _lock(file: IO[str]) -> bool:
    """Locks a file until it is closed or the process ends; False where another has locked it, or there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def cell(shared: Path, files: Mapping[str, bytes], main: str) -> Iterator[Cell]:
    """A cell for one submission, which shares the workshop `shared` with others."""
    reserved = user_number() if os.name == "posix" and os.getuid() == 0 else nullcontext(-1)
    with reserved as user, tempfile.TemporaryDirectory(dir=shared / "cells", ignore_cleanup_errors=True) as name:
        place = Path(name)
        for file, content in files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_bytes(content)
            (place / file).chmod(0o644 if file != main or is_python(main) else 0o755)  # an archive may have lost it
        _readable(place, user)
        yield Cell(shared, main, place, user)


@contextmanager
def user_number() -> Iterator[int]:
    """The number of a user that no other child of this machine has meanwhile: a jail ends all processes of its user. Each number has a
    file that is locked. A number is left for later while it has processes that haven't ended yet: a user may have only so many. Raises
    `UsageError` E0552 where another user has made the folder of these."""
    folder = Path(tempfile.gettempdir()) / "tpucc-users"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        help = ("remove it: it should be a folder of the grader's own, closed to others",)
        raise UsageError(Diagnostic("E0552", f"{printable(str(folder))} isn't the grader's own", help=help))
    first = os.getpid() * 64  # of a copy of a process another one
    for turn in islice(_TURNS, USERS):
        with (folder / str(number := FIRST_USER + (first + turn) % USERS)).open("w") as file:
            if _lock(file) and not _has_processes(number):
                yield number
                return
    raise UsageError(Diagnostic("E0552", f"all {USERS:,} users for submissions are taken", help=("run fewer graders at once",)))


def _has_processes(user: int) -> bool:
    """Whether a process of a user is there, where the system lists them in /proc."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if place.stat().st_uid == user:
                return True
    return False


def _warm(made: Cell, modules: Sequence[str]) -> None:
    words = NONE.command(made, {"modules": tuple(modules), "warm": True})
    done = subprocess.run(words, capture_output=True, check=False, env=NONE.environment(), timeout=10 * START)
    if done.returncode:
        raise InternalError(Diagnostic("E0900", f"the copy of tpucc can't be imported: {done.stderr.decode('utf-8', 'replace')[-500:]}"))


def _readable(folder: Path, user: int | None = None) -> None:
    """Lets every user read a folder, or only one, who is its group: -1 for the grader's own. No child may write."""
    for place, _, files in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in files)):
            mode = 0o755 if os.stat(path).st_mode & 0o100 else 0o644
            if user is not None and user >= 0:
                os.chown(path, -1, user)
            os.chmod(path, mode if user is None else mode & 0o750)
