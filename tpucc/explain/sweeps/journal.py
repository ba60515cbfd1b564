"""The points that are done: a file to which each appends a line, and from which a second run goes on.

The first line says which sweep it is. A line that was cut when its writer was killed doesn't count, and is removed. A line that no sweep
writes doesn't count either: its point is computed again.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from tpucc.diagnostics import Diagnostic, UsageError, counted, listed, printable
from tpucc.explain.sweeps.rows import Row, line_of_row, row_of_line
from tpucc.files import require_regular, unreadable
from tpucc.output_files import unwritable, write_file

with suppress(ImportError):  # not on Windows, where nothing keeps two commands apart
    import fcntl


WAIT = "wait until that has ended, or name another table with -o"


class _Identity(msgspec.Struct):
    """The first line: `Plan.identity`."""

    tpucc: str
    models: dict[str, str]
    options: list[str]
    axes: dict[str, list[str]]


class Journal:
    """An open journal: points and their rows. Of each point it keeps the place of its line only."""

    def __init__(self, path: Path, identity: Mapping[str, Any], count: int) -> None:
        """Raises `UsageError` E0561 when the file is another sweep's or is being written, E0504 and E0505 when it can't be used."""
        first = json.dumps(identity, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        if not path.exists():
            write_file(path, first)
        self.path = path
        self._file, refused = _opened(path)
        try:
            self._lock()
            self._begin(first, refused)
            self._require_same(identity)
            self._places = array("q", [-1]) * count
            self._read_places(cut=refused is None)
            if refused is not None and self.missing:
                raise unwritable(refused, path)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """No row can be read from then on. A journal without a point is removed: it would only be in the way of another sweep. What a
        full disk has no room for is lost."""
        if self._file.closed:
            return
        with suppress(OSError):
            self._file.close()
        if len(self.missing) == len(self._places):
            self.path.unlink(missing_ok=True)

    @property
    def missing(self) -> list[int]:
        """The points that aren't done."""
        return [point for point, place in enumerate(self._places) if place < 0]

    def add(self, point: int, row: Row) -> None:
        """Appends a line, in one step. A point that is done already stays as it is. Raises `UsageError` E0505 when the disk is full."""
        if self._places[point] >= 0:
            return
        place = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(line_of_row(point, row))
            self._file.flush()
        except OSError as error:
            raise unwritable(error, self.path) from None
        self._places[point] = place

    def row(self, point: int) -> Row:
        """The results of a point that is done."""
        self._file.seek(self._places[point])
        found = row_of_line(self._file.readline())
        if found is None:
            raise _refused(self.path, "has changed since it was read")
        return found[1]

    def _lock(self) -> None:
        with suppress(NameError):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise _refused(self.path, "is being written by another command", WAIT) from None

    def _begin(self, first: bytes, refused: OSError | None) -> None:
        """Writes the first line where the file is empty: its maker was killed before it had one. Raises `UsageError` E0505."""
        if self._file.seek(0, os.SEEK_END) == 0:
            if refused is not None:
                raise unwritable(refused, self.path)
            try:
                self._file.write(first)
                self._file.flush()
            except OSError as error:
                raise unwritable(error, self.path) from None
        self._file.seek(0)

    def _require_same(self, identity: Mapping[str, Any]) -> None:
        try:
            found = msgspec.to_builtins(msgspec.json.decode(self._file.readline(), type=_Identity))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise _refused(self.path, "isn't the points of a sweep") from None
        if differing := differences(found, identity):
            raise _refused(self.path, f"has the points of another sweep: {differing}")

    def _read_places(self, cut: bool) -> None:
        """Where each line begins. The file ends after the last whole line then, if it may be cut."""
        end = place = self._file.tell()
        for line in iter(self._file.readline, b""):
            kept = row_of_line(line) if line.endswith(b"\n") else None
            if kept is not None and kept[0] < len(self._places) and self._places[kept[0]] < 0:
                self._places[kept[0]] = place
            place += len(line)
            end = place if line.endswith(b"\n") else end
        if cut:
            self._file.truncate(end)


def _opened(path: Path) -> tuple[BinaryIO, OSError | None]:
    """The file, and why it can only be read, if so: that is enough where all points are there."""
    try:
        require_regular(path, path.stat().st_mode)
        try:
            return path.open("r+b"), None
        except OSError as error:
            return path.open("rb"), error
    except OSError as error:
        raise unreadable(path, error, "E0504") from None


def journal_of(table: Path, digest: str = "") -> Path:
    """The file with a table's points: `sweep.points.jsonl` for `sweep.csv`; for the sweep with a digest, `sweep.0a1b2c3d.points.jsonl`."""
    return table.with_suffix(f".{digest}.points.jsonl" if digest else ".points.jsonl")


def _refused(path: Path, why: str, help: str = "remove it, or name another table with -o") -> UsageError:
    return UsageError(Diagnostic("E0561", f"{path} {why}", help=(help,)))


FEW = 5
"""Differences, and things of one kind, that a message names."""
SHOWN = 40
"""Characters of one of them."""


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The differences of two identities (`Plan.identity`), "it" the one that is there and "this one" the one that is asked for. Empty
    where both are of the same points in the same order."""
    found = list(_differences(there, here))
    more = [f"and {counted(len(found) - FEW, 'more difference')}"] if len(found) > FEW else []
    return "; ".join([*found[:FEW], *more])


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    if there["tpucc"] != here["tpucc"]:
        yield f"it was made by tpucc {_shown(there['tpucc'])}, not {here['tpucc']}"
    yield from _apart("model", list(there["models"]), list(here["models"]))
    for model, digest in here["models"].items():
        if there["models"].get(model, digest) != digest:
            yield f"{printable(model)} or a file that it names has changed"
    before, now = (_whole(side["options"][:-1]) for side in (there, here))
    yield from _apart("option", before, now)
    if before == now and there["options"][-1:] != here["options"][-1:]:  # the digest of the files that options name
        yield "a file that an option names has changed"
    yield from _apart("axis", list(there["axes"]), list(here["axes"]), "axes")
    for axis, values in here["axes"].items():
        yield from _values(axis, there["axes"].get(axis, values), values)


def _apart(what: str, there: Sequence[str], here: Sequence[str], plural: str = "") -> Iterator[str]:
    """Names of models, options or axes that only one side has, or that have another order."""
    sides = _alone(there, here)
    for owner, only in sides:
        yield f"only {owner} has the {what if len(only) == 1 else plural or what + 's'} {_named(only)}"
    if not sides and list(there) != list(here):
        yield f"its {plural or what + 's'} are in another order"


def _values(axis: str, there: Sequence[str], here: Sequence[str]) -> Iterator[str]:
    sides = [f"only {owner} has {_named(only)}" for owner, only in _alone(there, here)]
    if sides:
        yield f"of the values of {_shown(axis)}, {', and '.join(sides)}"
    elif there != here:
        yield f"its values of {_shown(axis)} are in another order"


def _whole(words: Sequence[str]) -> list[str]:
    """Options with their values, as in `--activation-bits 16`."""
    return [option.replace("\0", " ") for option in re.split("\0(?=-)", "\0".join(words)) if option]


def _alone(there: Sequence[str], here: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Who has items that the other one hasn't, and these."""
    sides = (("it", Counter(there) - Counter(here)), ("this one", Counter(here) - Counter(there)))
    return [(owner, list(only.elements())) for owner, only in sides if only]


def _named(items: Sequence[str]) -> str:
    more = [f"{len(items) - FEW:,} more"] if len(items) > FEW else []
    return listed([*map(_shown, items[:FEW]), *more])


def _shown(text: str) -> str:
    """A text whose middle is left out where it is long."""
    plain, half = printable(text), SHOWN // 2
    return plain if len(plain) <= SHOWN else f"{plain[:half]}…{plain[-half:]}"
