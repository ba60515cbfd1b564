"""A lab's own solution, which its tests compare a submission's answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tpucc.guest.values import Plain, packed, unpacked
from tpucc.labs.lab import MATERIAL, declaration, filled
from tpucc.labs.recorded import packed as is_archive
from tpucc.labs.recorded import recorded
from tpucc.plugins.failures import Failed

REFERENCE = "reference.py"


@dataclass(frozen=True, slots=True)
class Solution:
    """The `reference.py` of the lab in the folder `lab`, with `words` of a term. It runs in this process: it is tpucc's own code, and no
    submission. No archive for students has it."""

    lab: str
    words: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, folder: Path, words: Mapping[str, str]) -> Solution:
        """The solution of the lab in a folder. `words` may be those alone that the solution has."""
        return cls(folder.name, tuple(sorted(words.items())))

    def answer(self, function: str, *arguments: Any) -> Plain:
        """What a function of the solution returns. An archive for students has recorded it for the public tests, and has None else."""
        return _answer(self, function, *arguments)

    def expected(self, function: str, *arguments: Any) -> Plain:
        """The same, where no test can do without it. Raises `NotImplementedError` in an archive that has not recorded it."""
        found = self.answer(function, *arguments)
        return self.call(function, *arguments) if found is None else found

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        """What a function of the solution returns, as a submission's. It isn't recorded. Raises `Failed`; in an archive
        `NotImplementedError`."""
        defined = _defined(self)
        try:
            return unpacked(packed(defined[function](*arguments)))
        except Exception as error:
            raise Failed(type(error).__name__, str(error)) from error

    def defines(self) -> tuple[str, ...]:
        """The names of what can be called."""
        return tuple(name for name, value in _defined(self).items() if callable(value))

    def text(self, name: str) -> str:
        """The text of the solution. Raises `Failed` for another file: a lab of functions has one."""
        if name != REFERENCE:
            raise Failed("file", f"the solution has no {name}")
        folder = Path(__file__).parent / self.lab
        if is_archive():
            raise NotImplementedError(f"lab {declaration(folder)['number']}: write {', '.join(declaration(folder)['functions'])}")
        return filled((folder / MATERIAL / REFERENCE).read_text("utf-8"), dict(self.words))


@recorded
def _answer(solution: Solution, function: str, *arguments: Any) -> Plain:
    return None if is_archive() else solution.call(function, *arguments)


@cache
def _defined(solution: Solution) -> dict[str, Any]:
    """What the solution's file defines."""
    defined: dict[str, Any] = {"__name__": "solution"}
    exec(compile(solution.text(REFERENCE), f"{solution.lab}/{REFERENCE}", "exec", dont_inherit=True), defined)
    return defined
