"""The files of a submission."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

from tpucc.labs.lab import Failed, Lab

TEXTS = (".py", ".asm", ".tile", ".tpu", ".graph", ".txt", ".md")
"""What a submission is made of; other files are left alone."""
MOST = 2**21
"""Bytes of a submission."""
FILES = 100
FILE = "lab.toml"
"""Says which lab a folder is of, and of which term. `grade` believes no term but that of `--term`: the file is the student's."""
MOST_OF_FILE = 2**12


def submitted(path: Path) -> dict[str, bytes]:
    """The files of a submission: those of a folder, or one. Raises `Failed` for links, for what is no regular file, and for too much."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found: dict[str, bytes] = {}
    for file in files:
        name = str(file.relative_to(path)) if path.is_dir() else file.name
        if file.is_symlink() or file.suffix in TEXTS or name == FILE:
            require_own(file, name)
        if file.suffix not in TEXTS:
            continue
        found[name] = file.read_bytes() if file.stat().st_size <= MOST else b""
        if len(found) > FILES or sum(map(len, found.values())) > MOST or file.stat().st_size > MOST:
            raise Failed("file", f"a submission has at most {FILES} files and {MOST:,} bytes")
    return found


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
    """What lies beside the submissions and isn't graded, such as an archive."""
    return sorted(path for path in folder.iterdir() if not _is_one(path, lab) and path.name != "check" and not path.name.startswith("."))


def _is_one(path: Path, lab: Lab) -> bool:
    """Of a lab of texts one file says neither whose it is nor which of the lab's files."""
    loose = path.suffix == ".py" and bool(lab.functions)
    return not path.name.startswith(".") and (loose or (path.is_dir() and path.name != "check"))


def digest(path: Path) -> str:
    """A hash of a submission's names and contents: sixteen characters. Files beyond the limit count by their sizes."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes() if file.stat().st_size <= MOST else str(file.stat().st_size).encode()
            found.update(os.fsencode(file.name) + f"\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]


def date(path: Path) -> str:
    """When the newest file of a submission was written, as `2027-03-01 12:00:00` UTC."""
    newest = max((file.lstat().st_mtime for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()), default=0.0)
    return datetime.fromtimestamp(newest, UTC).strftime("%Y-%m-%d %H:%M:%S")
