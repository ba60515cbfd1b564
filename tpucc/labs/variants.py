"""The variant of a lab that a student has: of the term, or of the term and the student.

A student's own variant is a term by itself, `TERM-0123456789abcdef`, whose name follows from the term, the lab and the student by a keyed
hash (HMAC-SHA256). So who has the key makes and grades everybody's variant again, and nobody else can tell whose a name is.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Container
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from unicodedata import normalize

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file
from tpucc.labs.lab import Lab, Term

LEAST_KEY, MOST_KEY = 16, 2**12
"""Bytes of a key."""
LONGEST_NAME = 80
"""Characters of a student's folder."""
RESERVED = "check"
"""The folder of a lab's pictures, which is no submission."""
DIGITS = 16
"""Hexadecimal digits of a variant's name."""


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
