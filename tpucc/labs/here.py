"""A submission in this process: for tpucc's own solutions and skeletons, and for those who trust their code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tpucc.guest.serving import function_of
from tpucc.guest.values import Plain, packed, require_plain, unpacked
from tpucc.plugins.failures import Failed, failed


@dataclass(frozen=True, slots=True)
class Here:
    """What a module `defines`, by its names, and its `file`."""

    defined: Mapping[str, Any]
    file: Path

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
        """No text: a lab of functions asks for none. Raises `Failed`."""
        raise Failed("file", f"no {name} is read: the lab asks for functions")

    def printed(self) -> str:
        """Nothing: what code prints in this process is on the terminal."""
        return ""


def executed(text: str, file: Path) -> Here:
    """The submission that the text of a file makes, which is executed in this process."""
    defined: dict[str, Any] = {"__name__": "submission", "__file__": str(file)}
    exec(compile(text, str(file), "exec", dont_inherit=True), defined)
    return Here(defined, file)
