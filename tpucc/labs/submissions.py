"""The files of a submission; and the variant of a lab that its student has, of the term or of the term and the student.

A student's own variant is a term by itself, `TERM-0123456789abcdef`, whose name follows from the term, the lab and the student by a keyed
hash (HMAC-SHA256). So who has the key makes and grades everybody's variant again, and nobody else can tell whose a name is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from unicodedata import normalize

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file
from tpucc.labs.lab import DIGITS, Lab, Term
from tpucc.plugins.failures import Failed, failing

TEXTS = (".py", ".asm", ".tile", ".tpu", ".graph", ".txt", ".md")
"""What a submission is made of; other files are left alone."""
MOST = 2**21
"""Bytes of a submission."""
FILES = 100
DEEPEST, ENTRIES = 20, 10_000
"""Folders in which a file may lie, and files and folders of all kinds that may lie there."""
FILE = "lab.toml"
"""Says which lab a folder is of, and of which term. `grade` believes no term but that of `--term`: the file is the student's."""
MOST_OF_FILE = 2**12


def submitted(path: Path, program: str = "") -> dict[str, bytes]:
    """The files of a submission: those of a folder, or one. One named `program` is among them, whatever it holds. Raises `Failed` for
    links, for what is no regular file, and for too much."""
    found: dict[str, bytes] = {}
    for name, file in _entries(path):
        if file.is_symlink() or file.suffix in TEXTS or name in (FILE, program):
            require_own(file, name)
        if file.suffix not in TEXTS and name != program:
            continue
        found[name] = file.read_bytes() if file.stat().st_size <= MOST else b""
        if len(found) > FILES or sum(map(len, found.values())) > MOST or file.stat().st_size > MOST:
            raise Failed("file", f"a submission has at most {FILES} files and {MOST:,} bytes")
    return found


def _entries(path: Path) -> list[tuple[str, Path]]:
    """What is in a submission's folder and in those below it, by the names inside it; or the one file. Links are not followed. Raises
    `Failed` where folders lie too deep in each other, and for too many."""
    if not path.is_dir():
        return [(path.name, path)]
    found, folders = list[Path](), [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            inside = [Path(entry.path) for entry in islice(entries, ENTRIES + 1)]
        found += inside
        if len(found) > ENTRIES:
            raise Failed("file", f"a submission's folders have at most {ENTRIES:,} files and folders of all kinds")
        folders += [entry for entry in inside if entry.is_dir() and not entry.is_symlink()]
        if folders and len(folders[-1].relative_to(path).parts) > DEEPEST:
            raise Failed("file", f"a submission's folders are at most {DEEPEST} deep")
    return [(entry.relative_to(path).as_posix(), entry) for entry in sorted(found)]


def require_own(file: Path, name: str = FILE) -> None:
    """Raises `Failed` for what is no regular file, such as a link or a pipe, and for a `lab.toml` that is too large to be one."""
    if file.is_symlink():
        raise Failed("file", f"{name} is a link; a submission is made of regular files")
    if not file.is_file():
        raise Failed("file", f"{name} is no regular file")
    if name == FILE and file.stat().st_size > MOST_OF_FILE:
        raise Failed("file", f"{name} is larger than {MOST_OF_FILE:,} bytes")


def submissions(folder: Path, lab: Lab) -> list[Path]:
    """The submissions in a folder: each folder, and each file that ends in .py where a lab asks for functions. Hidden ones are none, nor
    is `check`, which has pictures."""
    return sorted(path for path in folder.iterdir() if _is_one(path, lab))


def others(folder: Path, lab: Lab) -> list[Path]:
    """What lies beside the submissions and isn't graded, such as an archive, or a folder whose name is none for a submission. Hidden files
    aren't told."""
    return sorted(path for path in folder.iterdir() if not _is_one(path, lab) and (path.is_dir() or not path.name.startswith(".")))


def _is_one(path: Path, lab: Lab) -> bool:
    """Of a lab of texts one file says neither whose it is nor which of the lab's files."""
    loose = path.suffix == ".py" and bool(lab.functions)
    return not path.name.startswith(".") and (loose or (path.is_dir() and path.name != "check"))


NOTES = ".md"
"""What stands in such files a submission can't read, and counts for nothing."""


def digest_of_graded(files: Mapping[str, bytes], lab: Lab, names: Collection[str], main: str) -> str:
    """A hash of what is graded of a submission: of a lab of texts, the files of these `names`; else all files that its process sees, the
    Python file `main` under the lab's name for it. Which of them it reads, no look at its text can say. Nothing where there is no such
    file."""
    if lab.functions:
        called = main if main == lab.program else lab.file
        graded = {called if name == main else name: content for name, content in seen(files).items()} if main in files else {}
    else:
        graded = {name: files[name] for name in names if name in files}
    found = hashlib.sha256()
    for name, content in sorted(graded.items()):
        found.update(os.fsencode(name) + f"\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16] if graded else ""


def seen(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a submission that its process has: all but notes."""
    return {name: content for name, content in files.items() if not name.endswith(NOTES)}


def date(path: Path) -> str:
    """When the newest file of a submission was written, as the file says: `2027-03-01 12:00:00` UTC. Raises `Failed`, for a time that is
    no year's, too."""
    with failing("file", "the time at which the newest file was written"):
        return datetime.fromtimestamp(_newest(path), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _newest(path: Path) -> float:
    return max((file.lstat().st_mtime for _, file in _entries(path) if file.is_file()), default=0.0)


LEAST_KEY, MOST_KEY = 16, 2**12
"""Bytes of a key."""
LONGEST_NAME = 80
"""Characters of a student's folder."""
RESERVED = "check"
"""The folder of a lab's pictures, which is no submission."""


@dataclass(frozen=True)
class Variants:
    """The terms of a class's submissions: `term` for all without a `key`, and with one a variant for each student.

    A student is known by the name that the folder of a submission has or would have: see `folder_name`. Case doesn't matter.
    """

    lab: Lab
    term: Term
    key: bytes | None = None

    def of(self, submission: Path) -> Term:
        """The term of a submission, whose student is the name of its file or folder, without its ending and its case."""
        return self.term if self.key is None else self.of_student(submission.stem if submission.suffix == ".py" else submission.name)

    def of_student(self, student: str) -> Term:
        """The variant of a student."""
        assert self.key is not None
        said = "\0".join((self.term.name, self.lab.name, folder_name(student))).casefold().encode()
        return Term(f"{self.term.name or 'lab'}-{hmac.new(self.key, said, sha256).hexdigest()[:DIGITS]}")


def folder_name(student: str, taken: Container[str] = ()) -> str:
    """A name for a student's folder that any system has: composed letters, single spaces, and `_` for other signs. If it is `taken`, with a
    number."""
    words = " ".join(normalize("NFC", student).split())
    plain = re.sub(r"[^\w .@+-]", "_", words).strip(" .")[:LONGEST_NAME] or "student"
    name, number = plain, 1
    while name in taken or name == RESERVED:
        number += 1
        name = f"{plain} {number}"
    return name


def key_of(file: Path) -> bytes:
    """The key in a file: its bytes, without blanks around them. Raises `UsageError` E0503 for a file that isn't there, E0550 for a short
    one."""
    key = read_file(file, "E0503", "the key ", MOST_KEY).strip()
    if len(key) < LEAST_KEY:
        make = 'python -c "import secrets; print(secrets.token_hex())" > KEY makes one; keep it to yourself'
        message = f"{printable(str(file))} has {len(key)} bytes, and a key has {LEAST_KEY} at least"
        raise UsageError(Diagnostic("E0550", message, help=(make,)))
    return key
