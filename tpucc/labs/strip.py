"""Taking the reference solutions out of the package: what stands between markers becomes a stub that says what to write.

    # lab 5 begin: give each buffer its first row
    ...
    # lab 5 end

The markers are comments of their own line, around statements of one function's body. Helpers of other modules stand outside. What the tests
ask themselves is marked `# lab 8 begin (the grader asks it): …`: a submission's process doesn't get it, the students' archive keeps it.

In `tpucc/labs` stand the grader's own answers, which no archive for students has, whichever lab it is for. There markers may stand around a
whole module, which can't be imported then.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Set
from pathlib import Path

_MARKER = re.compile(r"^[ \t]*# lab \d+ (?:begin|end)\b.*$", re.MULTILINE)
_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)# lab (?P<lab>\d+) begin(?P<asked> \(the grader asks it\))?: (?P<task>.+)\n"
    r"(?P<body>(?:(?![ \t]*# lab \d+ (?:begin|end)\b).*\n)*)"
    r"[ \t]*# lab (?P=lab) end\n",
    re.MULTILINE,
)
LEFT_OUT = ("labs", "programs", "watch", "paper", "systolic")
"""What a child has no use for."""


class MarkerError(ValueError):
    """Markers that are nested, unclosed, or say nothing."""


def stripped(text: str, labs: Set[int] | None = None, name: str = "") -> str:
    """A module's text without the reference solutions of `labs`; without those of all, and what graders ask, where none is named. Raises
    `MarkerError`."""

    def without(block: re.Match[str]) -> str:
        if labs is not None and (int(block["lab"]) not in labs or block["asked"]):
            return block["body"]
        words = f"lab {block['lab']}: {block['task']}"
        return f"{block['indent']}raise NotImplementedError({words!r})\n"

    rest = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    if alone := _MARKER.search(rest):
        line = rest.count("\n", 0, alone.start()) + 1
        form = "a solution begins with `# lab N begin: what to write`, and ends with `# lab N end` before another one begins"
        raise MarkerError(f"{name}:{line}: `{alone[0].strip()}` stands alone: {form}")
    return _BLOCK.sub(without, text)


def has_markers(text: str) -> bool:
    """Whether a module's text has a marker."""
    return "# lab " in text and _MARKER.search(text) is not None


def copy_stripped(package: Path, folder: Path, labs: Set[int] | None = None, left_out: tuple[str, ...] = LEFT_OUT) -> None:
    """Writes the package without the reference solutions of `labs`, or of all, to `folder/tpucc`. Compiled modules that stay valid are
    kept: those of files without markers, which have the same time."""

    def ignored(place: str, names: list[str]) -> Set[str]:
        return {name for name in names if (Path(place) == package and name in left_out) or name.endswith(".tmp")}

    copy = folder / "tpucc"
    shutil.copytree(package, copy, ignore=ignored)
    for path in copy.rglob("*.py"):
        if (text := stripped_file(path, copy, labs)) is not None:
            path.write_text(text, "utf-8")
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()


def stripped_file(path: Path, package: Path, labs: Set[int] | None) -> str | None:
    """The text of a file of the package without the reference solutions of `labs`, or of all; None for a file without markers."""
    if path.suffix != ".py" or not has_markers(text := path.read_text("utf-8")):
        return None
    taken = None if labs and path.is_relative_to(package / "labs") else labs
    return stripped(text, taken, path.name)
