"""The submissions of a course's platform as folders that `grade --all` takes: one for each student, with the names that the lab asks for.

Known layouts, of a zip file or of a folder where one was unpacked:

- Moodle, in folders: `Anna Berg_123_assignsubmission_file/allocation.py`; or flat: `Anna Berg_123_assignsubmission_file_allocation.py`.
- Canvas: `berganna_123_456_allocation.py`, `berganna_LATE_123_456_allocation-1.py`: of several versions the last counts.
- Anything else: a folder for each student, or a file `anna.py` for each.

Archives inside are opened. A file is taken for the lab's by its name, whatever its case and the number of its version; else, if there is no
other, by the functions that it defines. What isn't a submission's is left out, and said.
"""

from __future__ import annotations

import ast
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.labs.lab import Lab, Term
from tpucc.labs.likeness import LONGEST
from tpucc.labs.submissions import FILE, MOST, TEXTS

ENTRIES, DEEPEST = 50_000, 3
"""Files of an export at most, and archives in each other."""
TOTAL = 2**28
"""Bytes of all files of an export at most, unpacked."""
LARGEST_ARCHIVE = 2**26
"""Bytes of an archive inside another one that are read."""
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, zlib.error, EOFError)
"""What damaged, encrypted and unusual archives raise."""
LONGEST_NAME = 80
"""Characters of a student's folder."""
MOODLE = re.compile(r"(?P<student>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)")
CANVAS = re.compile(r"(?P<student>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
VERSION = re.compile(r"(?P<stem>.*?)(?:[ _-]*\(?(?P<number>\d+)\)?)?(?P<ending>\.\w+)")
"""A file's name with the number of its version: `allocation-2.py`, `allocation (2).py`."""
JUNK = frozenset({"__MACOSX", "__pycache__", ".git", ".DS_Store", "Thumbs.db"})


@dataclass
class Collected:
    """What was made of an export: for each student the files by their names in the folder, what was `taken` for another name, and what was
    `left` out, with the reason."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Entry:
    """A file of an export: where it is, `path` inside the student's part, and its content."""

    place: str
    path: PurePosixPath
    content: bytes


def collect(export: Path, lab: Lab, term: Term) -> Collected:
    """The submissions of an export. Raises `UsageError` E0503 for a file that isn't one, E0554 for one that is too large."""
    found = Collected()
    students: dict[tuple[str, str], list[_Entry]] = {}
    for place, path, content in _entries(export, found):
        student, number, inside = _student(path)
        students.setdefault((student, number), []).append(_Entry(place, inside, content))
    names = [student for student, _ in students]
    for (student, number), entries in sorted(students.items()):
        name = f"{student}-{number}" if names.count(student) > 1 and number else student
        files = _files(name, entries, lab, term, found)
        if files:
            found.files[_folder_name(name, found.files)] = files
    return found


def _student(path: PurePosixPath) -> tuple[str, str, PurePosixPath]:
    """Whose a file is, the number that the platform has for it, and its path without either."""
    first, rest = path.parts[0], PurePosixPath(*path.parts[1:])
    if known := MOODLE.fullmatch(first):
        return known["student"], known["id"], rest if path.parts[1:] else PurePosixPath(known["file"] or first)
    if not path.parts[1:]:
        if known := CANVAS.fullmatch(first):
            return known["student"], known["id"], PurePosixPath(known["file"])
        return PurePosixPath(first).stem, "", PurePosixPath(first)
    return first, "", rest


def _files(student: str, entries: list[_Entry], lab: Lab, term: Term, found: Collected) -> dict[str, bytes]:
    """The files of a student by their names in the folder. Of several for one name the one that lies highest counts, and of those the one
    of the last version."""
    asked = {name.casefold(): name for name in (*lab.files(term), FILE)}
    best: dict[str, tuple[tuple[int, int], _Entry]] = {}
    others: list[_Entry] = []
    for entry in entries:
        known = VERSION.fullmatch(entry.path.name)
        plain = f"{known['stem']}{known['ending']}" if known else entry.path.name
        name = asked.get(entry.path.name.casefold()) or asked.get(plain.casefold())
        if name is None:
            others.append(entry)
            continue
        version = 0 if entry.path.name.casefold() in asked or known is None else int(known["number"] or 0)
        rank = (-len(entry.path.parts), version)
        if name in best and best[name][0] >= rank:
            found.left.append(f"{entry.place}: {best[name][1].path} is taken for {name}")
            continue
        if name in best:
            found.left.append(f"{best[name][1].place}: {entry.path} is taken for {name}")
        best[name] = rank, entry
    if lab.functions and lab.file not in best:
        for entry in _defining(lab, others, found, student):
            best[lab.file] = (0, 0), entry
    for name, (_, entry) in best.items():
        if str(entry.path) != name:
            found.taken.append(f"{student}: {printable(entry.place)} is {name}")
    chosen = {id(entry) for _, entry in best.values()}
    return {name: entry.content for name, (_, entry) in best.items()} | _beside(
        [entry for entry in others if id(entry) not in chosen], best.keys() - {FILE}, found
    )


def _defining(lab: Lab, entries: list[_Entry], found: Collected, student: str) -> Iterator[_Entry]:
    """The one file that defines the lab's functions, or the one file of Python, whatever its name."""
    programs = [entry for entry in entries if entry.path.suffix == ".py"]
    defining = [entry for entry in programs if set(lab.functions) <= _defined(entry.content)] or programs
    if len(defining) == 1:
        yield defining[0]
    elif defining:
        found.left.append(f"{student}: none of {len(defining)} files is named {lab.file}, and more than one could be it")
    else:
        found.left.append(f"{student}: there is no file {lab.file}, nor another one of Python")


def _defined(content: bytes) -> set[str]:
    """The names of the functions that a file defines."""
    try:
        tree = ast.parse(content.decode()) if len(content) <= LONGEST else ast.Module([], [])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _beside(entries: list[_Entry], main: set[str], found: Collected) -> dict[str, bytes]:
    """The other files of a submission that has its main ones: modules and texts, by their own names."""
    files: dict[str, bytes] = {}
    for entry in entries:
        if not main or entry.path.suffix not in TEXTS or entry.path.name in files:
            found.left.append(f"{entry.place}: no file of the lab's")
        else:
            files[entry.path.name] = entry.content
    return files


def _folder_name(student: str, taken: Mapping[str, object]) -> str:
    """A name for the student's folder that any system has, and that no other student has."""
    plain = re.sub(r"[^\w .@+-]", "_", student).strip(" .")[:LONGEST_NAME] or "student"
    name, number = plain, 1
    while name.casefold() in {each.casefold() for each in taken}:
        number += 1
        name = f"{plain} {number}"
    return name


def _entries(export: Path, found: Collected) -> Iterator[tuple[str, PurePosixPath, bytes]]:
    """The files of an export: where each is, its path without a folder that has all of them, and its content."""
    read = _in_folder(export) if export.is_dir() else _in_archive(_opened(export), "", found)
    kept, left = list[tuple[str, PurePosixPath, bytes]](), TOTAL
    for place, path, content in _unpacked(read, found, 0):
        left -= len(content)
        if len(kept) >= ENTRIES or left < 0:
            message = f"{printable(str(export))} has more than {ENTRIES:,} files or {TOTAL:,} bytes"
            raise UsageError(Diagnostic("E0554", message, help=("collect it in parts",)))
        kept.append((place, path, content))
    while _has_one_folder([path for _, path, _ in kept]):
        kept = [(place, PurePosixPath(*path.parts[1:]), content) for place, path, content in kept]
    yield from kept


def _has_one_folder(paths: Sequence[PurePosixPath]) -> bool:
    """Whether all students' folders, or files with their names, lie in one folder."""
    if len({path.parts[0] for path in paths}) != 1 or any(len(path.parts) < 2 for path in paths):
        return False
    return all(len(path.parts) > 2 for path in paths) or any(known.fullmatch(path.parts[1]) for path in paths for known in (MOODLE, CANVAS))


def _unpacked(
    entries: Iterable[tuple[str, PurePosixPath, bytes]], found: Collected, depth: int
) -> Iterator[tuple[str, PurePosixPath, bytes]]:
    """The same with archives opened: what is in one lies where it lies. What is too large is left out."""
    for place, path, content in entries:
        if path.suffix == ".zip" and depth < DEEPEST:
            try:
                archive = zipfile.ZipFile(BytesIO(content))
            except BROKEN as error:
                found.left.append(f"{place}: {error}")
                continue
            within = _in_archive(archive, f"{place}/", found)
            yield from _unpacked(((where, _inside(path, inner), data) for where, inner, data in within), found, depth + 1)
        elif len(content) > MOST:
            found.left.append(f"{place}: more than {MOST:,} bytes")
        else:
            yield place, path, content


def _inside(archive: PurePosixPath, path: PurePosixPath) -> PurePosixPath:
    """Where a file of an archive lies: in the archive's folder. Of an archive without one its name says the student, or is the student."""
    if len(archive.parts) > 1:
        return archive.parent / path
    if known := MOODLE.fullmatch(archive.name) or CANVAS.fullmatch(archive.name):
        return PurePosixPath(archive.name[: known.start("file")] + path.name)
    return PurePosixPath(archive.stem) / path


def _opened(export: Path) -> zipfile.ZipFile:
    """The archive of an export. Raises `UsageError` E0503."""
    try:
        return zipfile.ZipFile(export)
    except (*BROKEN, OSError):
        message = f"{printable(str(export))} is neither a folder nor a zip file"
        raise UsageError(Diagnostic("E0503", message, help=("what Moodle or Canvas gives for all submissions is one",))) from None


def _is_junk(path: PurePosixPath) -> bool:
    """Whether a file is what systems leave in archives, or hidden."""
    return not path.parts or bool(JUNK & {*path.parts}) or path.name.startswith(".")


def _in_archive(archive: zipfile.ZipFile, before: str, found: Collected) -> Iterator[tuple[str, PurePosixPath, bytes]]:
    """The files of an archive. A path that leads out of it is cut to its last name; of a large file only the beginning is unpacked."""
    for info in archive.infolist()[:ENTRIES]:
        path = PurePosixPath(info.filename.replace("\\", "/"))
        path = PurePosixPath(path.name) if path.is_absolute() or ".." in path.parts else path
        if info.is_dir() or _is_junk(path):
            continue
        try:
            with archive.open(info) as file:
                content = file.read(LARGEST_ARCHIVE if path.suffix == ".zip" else MOST + 1)
        except BROKEN as error:
            found.left.append(f"{before}{info.filename}: {error}")
        else:
            yield before + info.filename, path, content


def _in_folder(folder: Path) -> Iterator[tuple[str, PurePosixPath, bytes]]:
    """The regular files of a folder; links aren't followed."""
    for path in sorted(folder.rglob("*")):
        inside = PurePosixPath(path.relative_to(folder).as_posix())
        if path.is_file() and not path.is_symlink() and not _is_junk(inside):
            with path.open("rb") as file:
                yield str(inside), inside, file.read(LARGEST_ARCHIVE if path.suffix == ".zip" else MOST + 1)
