"""The variant of a lab that a student has: of the term, or of the term and the student.

A student's own variant is a term by itself, `TERM-0123456789abcdef`, whose name follows from the term, the lab and the student by a keyed
hash (HMAC-SHA256). So who has the key makes and grades everybody's variant again, and nobody else can tell whose a name is.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.files import read_file
from tpucc.labs.lab import Lab, Term

LEAST_KEY, MOST_KEY = 16, 2**12
"""Bytes of a key."""
DIGITS = 16
"""Hexadecimal digits of a variant's name."""


@dataclass(frozen=True)
class Variants:
    """The terms of a class's submissions: `term` for all without a `key`, and with one a variant for each student."""

    lab: Lab
    term: Term
    key: bytes | None = None

    def of(self, submission: Path) -> Term:
        """The term of a submission, whose student is the name of its file or folder, without its ending and its case."""
        return self.term if self.key is None else self.of_student(submission.stem if submission.suffix == ".py" else submission.name)

    def of_student(self, student: str) -> Term:
        """The variant of a student."""
        assert self.key is not None
        said = "\0".join((self.term.name, self.lab.name, student.strip().casefold())).encode()
        return Term(f"{self.term.name or 'lab'}-{hmac.new(self.key, said, sha256).hexdigest()[:DIGITS]}")


def key_of(file: Path) -> bytes:
    """The key in a file: its bytes, without blanks around them. Raises `UsageError` E0503 for a file that isn't there, E0550 for a short
    one."""
    key = read_file(file, "E0503", "the key ", MOST_KEY).strip()
    if len(key) < LEAST_KEY:
        make = 'python -c "import secrets; print(secrets.token_hex())" > KEY makes one; keep it to yourself'
        message = f"{printable(str(file))} has {len(key)} bytes, and a key has {LEAST_KEY} at least"
        raise UsageError(Diagnostic("E0550", message, help=(make,)))
    return key
