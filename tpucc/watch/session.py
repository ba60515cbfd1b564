"""Going round: look at the files, compile when one has other bytes, show the outcome."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tpucc.diagnostics import reason
from tpucc.driver import front_end
from tpucc.files import inside, opened
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.watch.build import Built, Outcome, Recipe, attempt
from tpucc.watch.server import Board
from tpucc.watch.site import compiling, view_of

PAUSE = 0.25
"""Seconds between two looks."""
SETTLED = 0.05
"""Seconds that the files must stay as they are: an editor that empties a file before it writes it has done so by then."""
MOST_LOOKS = 40
"""Looks at files that don't settle; then they are compiled as they are."""
SMALL = 1 << 20
"""Files up to this many bytes are read at every look; a larger one only when its size, its inode or its time of change is another."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A file as it was at a look: `stamp` is its time of change in nanoseconds, its size and its inode."""

    stamp: tuple[int, int, int]
    digest: bytes


ABSENT = Mark((0, 0, 0), b"")

Listener = Callable[[Outcome, float], None]
"""Hears every outcome, and the seconds that it took."""


class Session:
    """A model that is compiled whenever one of its files changes, and its board."""

    def __init__(self, recipe: Recipe, board: Board, heard: Listener, pause: float = PAUSE) -> None:
        self._recipe = recipe
        self._board = board
        self._heard = heard
        self._pause = pause
        self._marks: Mapping[Path, Mark] = {}
        self._good: Built | None = None

    def follow(self, stop: Event) -> None:
        """Compiles, and again after every change, until `stop` is set."""
        self.turn()
        while not stop.wait(self._pause):
            self.turn()

    def turn(self) -> bool:
        """One look; returns whether it led to a compilation."""
        marks = look(self._marks or [self._recipe.path], self._marks)
        if self._marks and not differ(marks, self._marks):
            return False
        self._marks = self._settled(marks)
        self._compile()
        return True

    def _settled(self, marks: Mapping[Path, Mark]) -> Mapping[Path, Mark]:
        """The marks of all files that the source needs now, once they stay the same. They are taken before compiling reads the files: what
        changes later is seen at the next look."""
        for _ in range(MOST_LOOKS):
            time.sleep(min(SETTLED, self._pause))
            again = look(self._files(), marks)
            if not differ(again, marks):
                break
            marks = again
        return marks

    def _files(self) -> list[Path]:
        """The source and what it names; a source that names nothing, as it is wrong, keeps the names it had."""
        recipe = self._recipe
        try:
            named = list(named_files(recipe.path, recipe.options()))
        except Exception:  # whatever it is, the compilation meets it again and shows it
            named = list(self._marks)
        return list(dict.fromkeys([recipe.path, *recipe.beside, *named]))

    def _compile(self) -> None:
        self._board.show(compiling(self._board.view))
        started = time.perf_counter()
        outcome = attempt(self._recipe, self._good)
        if isinstance(outcome, Built):
            self._good = outcome
        self._board.show(view_of(self._recipe.path.name, outcome, self._good))
        self._heard(outcome, time.perf_counter() - started)


def look(paths: Iterable[Path], before: Mapping[Path, Mark]) -> dict[Path, Mark]:
    """The marks of these files. `before` is the look before, which saves reading large files again."""
    return {path: _mark(path, before.get(path, ABSENT)) for path in paths}


def differ(one: Mapping[Path, Mark], other: Mapping[Path, Mark]) -> bool:
    """Whether a file has come, gone, become something that can't be read, or has other bytes. A new time of change alone doesn't count."""
    return {path: mark.digest for path, mark in one.items()} != {path: mark.digest for path, mark in other.items()}


def named_files(path: Path, options: Options) -> Iterator[Path]:
    """The archives that the source at `path` names, there or not. Raises what reading and elaborating it raises."""
    model = front_end(read_source(path, options.params), options)
    folder = path.parent
    for name in (model.weights, model.calibration):
        if name and "\0" not in name and inside(folder / name, folder):
            yield folder / name


def _mark(path: Path, before: Mark) -> Mark:
    """The mark of one file. Only regular files are opened: reading a pipe may never end. What can't be read, as a folder, is another thing
    than one that isn't there."""
    try:
        info = path.stat()
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if info.st_size > SMALL and stamp == before.stamp:
            return before
        with opened(path) as stream:
            return Mark(stamp, hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        return ABSENT if isinstance(error, FileNotFoundError) else Mark((0, 0, 0), reason(error).encode())
