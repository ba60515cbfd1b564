"""The version of the text forms, a comment in the first line of their files: a text of another version is refused before it is read.

A text without one, as it is typed or printed by Python, is taken as being of this version.
"""

from __future__ import annotations

import re

from tpucc.diagnostics import Diagnostic, ProgramError, Source

VERSION = 1
"""To be raised with every change after which a text that was written before can't be read, or means something else."""
_STAMP = re.compile(r"\ufeff?[;#] a text of tpucc, version (\d{1,99})\r?\n")


def stamped(text: str, comment: str) -> str:
    """A text as its file has it; `comment` is the character that its comments begin with."""
    return f"{comment} a text of tpucc, version {VERSION}\n{text}"


def require_version(source: Source) -> None:
    """Raises `ProgramError` E0702 for a text of another version."""
    found = _STAMP.match(source.text)
    if found is not None and int(found[1]) != VERSION:
        message = f"the text has version {int(found[1])} of the text forms; this tpucc reads version {VERSION}"
        mend = "compile the model again with this tpucc, or read the text with the one that wrote it"
        raise ProgramError(Diagnostic("E0702", message, help=(mend,)), source)
