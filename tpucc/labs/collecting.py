"""The submissions of a course's platform as folders that `grade --all` takes: one for each student, with the names that the lab asks for.

Known layouts, of a zip file or of a folder where one was unpacked:

- Moodle, in folders: `Anna Berg_123_assignsubmission_file/FILE`; or flat: `Anna Berg_123_assignsubmission_file_FILE`.
- Canvas: `berganna_123_456_FILE`, `berganna_LATE_123_456_FILE`, with a number at the end of the name: of several versions the last counts.
- Anything else: a folder for each student, or a file with the student's name.

Whose a file is says the export alone: what is in a student's archive is that student's, whatever its name. A file is taken for the lab's
by its name, whatever its case and the number of its version; else, if there is no other, by the functions that it defines. Files in its
folder, and in those below, are taken with it. What isn't a submission's is left out, and said. Who has too much is left out alone.
"""

from __future__ import annotations

import ast
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.labs.lab import Lab, Term
from tpucc.labs.likeness import parsed
from tpucc.labs.submissions import FILE, FILES, MOST, TEXTS, folder_name

STUDENTS = 20_000
"""Files and archives of an export at most."""
UNPACKED, ENTRIES, DEEPEST = 2**26, 5_000, 3
"""Bytes and files of a student at most, unpacked, and archives in each other."""
LONGEST = 100
"""Characters of a file's or folder's name."""
MOODLE = re.compile(r"(?P<student>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
CANVAS = re.compile(r"(?P<student>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
VERSION = re.compile(r"[ _-]*\(?(?P<number>\d{1,4})\)?$")
"""The number of a version at the end of a name: `allocation-2`, `allocation (2)`."""
JUNK = frozenset({"__MACOSX", "__pycache__", "Thumbs.db", "node_modules", "site-packages", "venv"})
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OSError, EOFError, zlib.error, LZMAError)
"""What damaged, encrypted and unusual archives raise."""


@dataclass
class Collected:
    """What was made of an export: for each student the files by their paths in the folder, what was `taken` for another name, and what was
    `left` out, with the reason. Of the students `without` nothing could be taken."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _File:
    """A file of a student: its path, inside the student's part of the export, and its content."""

    path: PurePosixPath
    content: bytes


@dataclass
class _Part:
    """A student's part of an export: the files so far, and the bytes that may still be unpacked; fewer than 0 of what is larger than any
    submission."""

    files: list[_File] = field(default_factory=list)
    rest: int = UNPACKED


Opening = Callable[[], Any]
"""Opens a file, to be read as bytes."""
Entry = tuple[PurePosixPath, Opening]
"""A file of an export or of an archive: its path, and what opens it."""


def collect(export: Path, lab: Lab, term: Term) -> Collected:
    """The submissions of an export. Raises `UsageError` E0503 for a file that isn't one, E0554 for one of too many files."""
    found = Collected()
    parts: dict[tuple[str, str], _Part] = {}
    for path, opening in _entries(export):
        student, number, inside = _student(path)
        _unpack(parts.setdefault((student, number), _Part()), inside, opening, str(path), DEEPEST, found)
    names = [student for student, _ in parts]
    for (student, number), part in sorted(parts.items(), key=lambda item: item[0]):
        name = folder_name(f"{student}-{number}" if names.count(student) > 1 and number else student, {*found.files, *found.without})
        if part.rest < 0:
            found.left.append(f"{name}: more than {ENTRIES:,} files or {UNPACKED:,} bytes")
        if chosen := _chosen(name, part.files if part.rest >= 0 else [], lab, term, found):
            found.files[name] = chosen
        else:
            found.without.append(name)
    return found


def _student(path: PurePosixPath) -> tuple[str, str, PurePosixPath]:
    """Whose a file is, the number that the platform has for it, and its path without either."""
    first, rest = path.parts[0], path.parts[1:]
    if not rest and (known := CANVAS.fullmatch(first)):
        return known["student"], known["id"], PurePosixPath(known["file"])
    if known := MOODLE.fullmatch(first):
        return known["student"], known["id"], PurePosixPath(*rest) if rest else PurePosixPath(known["file"] or first)
    return (first, "", PurePosixPath(*rest)) if rest else (PurePosixPath(first).stem, "", PurePosixPath(first))


def _chosen(student: str, files: Sequence[_File], lab: Lab, term: Term, found: Collected) -> dict[str, bytes]:
    """The files of a student by their paths in the folder; none where the lab's aren't there. Of several for one name the one that lies
    highest counts, and of those the one of the last version."""
    asked = {name.casefold(): name for name in (*lab.files(term), FILE)}
    best: dict[str, tuple[tuple[int, int], _File]] = {}
    for file in files:
        name, version = _named(file.path.name, asked)
        rank = -len(file.path.parts), version
        if name and (name not in best or best[name][0] < rank):
            best[name] = rank, file
    main = {name: file for name, (_, file) in best.items()}
    if lab.functions and lab.file not in main:
        for file in _defining(student, files, lab, found):
            main[lab.file] = file
    if not main.keys() - {FILE} or (lab.functions and lab.file not in main):
        return {}
    for name, file in main.items():
        if file.path.name != name:
            found.taken.append(f"{student}: {file.path} is {name}")
    beside = _beside(student, files, main[lab.file].path, found) if lab.functions else {}
    return beside | {name: file.content for name, file in main.items()}


def _named(name: str, asked: dict[str, str]) -> tuple[str, int]:
    """The lab's name for a file, or nothing, and the number of its version."""
    if known := asked.get(name.casefold()):
        return known, 0
    stem, dot, ending = name.rpartition(".")
    version = VERSION.search(stem) if len(name) <= LONGEST else None
    return (asked.get(f"{stem[: version.start()]}{dot}{ending}".casefold(), ""), int(version["number"])) if version else ("", 0)


def _defining(student: str, files: Sequence[_File], lab: Lab, found: Collected) -> Iterator[_File]:
    """The one file that defines the lab's functions, or the one file of Python, whatever its name."""
    programs = [file for file in files if file.path.suffix.casefold() == ".py"]
    defining = [file for file in programs if set(lab.functions) <= _defined(file.content)] or programs
    if len(defining) == 1:
        yield defining[0]
    elif defining:
        found.left.append(f"{student}: none of {len(defining)} files is named {lab.file}, and more than one could be it")


def _defined(content: bytes) -> set[str]:
    """The names of the functions that a file defines."""
    tree = parsed(content)
    return set() if isinstance(tree, str) else {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _beside(student: str, files: Sequence[_File], main: PurePosixPath, found: Collected) -> dict[str, bytes]:
    """The other files in the folder of the lab's file, and in those below: modules and texts, by their paths. Of too many, none."""
    others = {
        file.path.relative_to(main.parent).as_posix(): file.content
        for file in files
        if file.path.is_relative_to(main.parent) and file.path != main and file.path.suffix in TEXTS
    }
    if len(others) >= FILES or sum(map(len, others.values())) > MOST:
        found.left.append(f"{student}: {counted(len(others), 'file')} beside the lab's")
        return {}
    return others


def _unpack(part: _Part, path: PurePosixPath, opening: Opening, place: str, depth: int, found: Collected) -> None:
    """Adds a file to a student's part, if that isn't too much already; or the files of an archive, which lie where the archive lies. Of a
    large file only the beginning is read. Files that can't be read are left out."""
    if _is_junk(path) or part.rest < 0:
        return
    if any(len(name) > LONGEST for name in path.parts):
        found.left.append(f"{place[:LONGEST]}…: a name of more than {LONGEST} characters")
        return
    is_archive = path.suffix.casefold() == ".zip"
    try:
        with opening() as opened:
            content: bytes = opened.read(UNPACKED if is_archive else MOST + 1)
    except BROKEN as error:
        found.left.append(f"{place}: {'encrypted' if 'encrypted' in str(error) else 'damaged'}")
        return
    part.rest = part.rest - len(content) if len(part.files) < ENTRIES else -1
    if part.rest < 0:
        return
    if not is_archive and len(content) <= MOST:
        part.files.append(_File(path, content))
    elif not is_archive:
        found.left.append(f"{place}: more than {MOST:,} bytes")
    elif not depth:
        found.left.append(f"{place}: an archive in {counted(DEEPEST, 'other')}")
    else:
        try:
            archive = zipfile.ZipFile(BytesIO(content))
        except BROKEN:
            found.left.append(f"{place}: a damaged archive")
            return
        for inner, opening_inner in _in_archive(archive):
            _unpack(part, path.parent / inner, opening_inner, f"{place}/{inner}", depth - 1, found)


def _entries(export: Path) -> Iterator[Entry]:
    """The files of an export, without a folder that has all of them. Raises `UsageError`."""
    shown, entries = printable(str(export)), list[Entry]()
    if export.is_dir():
        files = [path for path in sorted(export.rglob("*")) if path.is_file() and not path.is_symlink()]
        paths = [PurePosixPath(file.relative_to(export).as_posix()) for file in files]
        entries = [(path, partial(file.open, "rb")) for path, file in zip(paths, files, strict=True)]
    else:
        try:
            entries = list(_in_archive(zipfile.ZipFile(export)))
        except BROKEN:
            message = f"{shown} is neither a folder nor a zip file" if export.exists() else f"there is no {shown}"
            raise UsageError(Diagnostic("E0503", message, help=("what Moodle or Canvas gives for all submissions is one",))) from None
    if len(entries) > STUDENTS:
        message = f"{shown} has {len(entries):,} files, and at most {STUDENTS:,} are read"
        raise UsageError(Diagnostic("E0554", message, help=("collect it in parts",)))
    depth = _common([path for path, _ in entries])
    for path, opening in entries:
        if not _is_junk(path) and len(path.parts) > depth:
            yield PurePosixPath(*path.parts[depth:]), opening


def _in_archive(archive: zipfile.ZipFile) -> Iterator[Entry]:
    """The files of an archive. The path of one that leads out of it is cut to its last name."""
    for info in archive.infolist():
        path = PurePosixPath(info.filename.replace("\\", "/"))
        path = PurePosixPath(path.name) if path.is_absolute() or ".." in path.parts else path
        if not info.is_dir() and path.parts:
            yield path, partial(archive.open, info)


def _common(paths: Sequence[PurePosixPath]) -> int:
    """How many folders all students' parts lie in. Files beside such a folder, as a table of grades, don't count."""
    depth = 0
    while True:
        inside = [path.parts[depth:] for path in paths if len(path.parts) > depth and not _is_junk(path)]
        folders = {parts[0] for parts in inside if len(parts) > 1}
        files = {parts[0] for parts in inside if len(parts) == 1}
        if len(folders) != 1 or MOODLE.fullmatch(min(folders)) or any(PurePosixPath(name).suffix in (".py", ".zip") for name in files):
            return depth
        within = {parts[1]: len(parts) > 2 for parts in inside if len(parts) > 1}
        several = sum(within.values()) > 1 and not any(name.endswith(".py") and not folder for name, folder in within.items())
        if not several and not any(known.fullmatch(name) for name in within for known in (MOODLE, CANVAS)):
            return depth
        depth += 1


def _is_junk(path: PurePosixPath) -> bool:
    """Whether a file is what systems and tools leave in archives, or hidden."""
    return any(part in JUNK or part.startswith(".") for part in path.parts)
