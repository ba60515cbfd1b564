"""A submission in this process: tpucc's own solutions and skeletons, code of those who trust it, and texts, which nothing executes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tpucc.diagnostics import printable
from tpucc.guest.serving import function_of
from tpucc.guest.values import Plain, packed, require_plain, unpacked
from tpucc.plugins.failures import Failed, failed


@dataclass(frozen=True, slots=True)
class Here:
    """What a module defines, by its names, and its `file`. Of a lab of texts, which nothing executes, only `files`."""

    defined: Mapping[str, Any]
    file: Path
    files: Mapping[str, bytes] = field(default_factory=dict)

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        """What a function returns. Raises `Failed`."""
        try:
            module = SimpleNamespace(**{"__file__": str(self.file), **self.defined})
            return require_plain(unpacked(packed(function_of(module, function)(*arguments))))
        except Exception as error:
            raise failed(error, lambda file: file.startswith(str(self.file.parent))) from error

    def defines(self) -> tuple[str, ...]:
        """The names of what can be called."""
        return tuple(name for name, value in self.defined.items() if callable(value))

    def text(self, name: str) -> str:
        """The text of a file. Raises `Failed`."""
        if name not in self.files:
            raise missing(name, next((own for own in self.files if _number(own) == _number(name)), ""))
        try:
            return self.files[name].decode("utf-8")
        except UnicodeDecodeError:
            raise Failed("file", f"{name} is no text in UTF-8") from None

    def printed(self) -> str:
        """Nothing: what code prints in this process is on the terminal."""
        return ""


def missing(name: str, there: str) -> Failed:
    """That a file is missing, and which file, if any, may be meant for it."""
    return Failed("file", f"the submission has no {name}" + (f"; it has {printable(there)}" if there else ""))


def _number(name: str) -> int | None:
    """The first number in a file's name, as of `puzzle1.asm` and `Puzzle01 (1).asm`."""
    found = re.search(r"\d{1,9}", name.rpartition("/")[2])
    return int(found[0]) if found else None


def executed(text: str, file: Path) -> Here:
    """The submission that the text of a file makes, which is executed in this process."""
    defined: dict[str, Any] = {"__name__": "submission", "__file__": str(file)}
    exec(compile(text, str(file), "exec", dont_inherit=True), defined)
    return Here(defined, file)
