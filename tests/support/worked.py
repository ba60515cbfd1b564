"""Copies of the package with changes in them, as a student would make them, and programs that run on such a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]


UNFINISHED = shutil.ignore_patterns("*.pyc.*")
"""Bytecode that another process is writing."""


def package_copy(folder: Path) -> Path:
    """A folder with a copy of the package, its bytecode included: files that stay as they are aren't compiled again."""
    shutil.copytree(ROOT / "tpucc", folder / "tpucc", ignore=UNFINISHED)
    return folder


WORKED = ROOT / "docs" / "worked"


def apply_diff(folder: Path, diff: str) -> None:
    """Applies a unified diff of one or several files. Every hunk must fit exactly one place, or stand there already; a file after
    `/dev/null` is new."""
    name, old, new, is_new = "", "", "", False
    for line in [*diff.splitlines(keepends=True), "@@"]:
        if line.startswith(("@@", "---")):
            if is_new and new:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(new)
            elif old and not _stands(folder / name, old, new):
                replace_once(folder / name, old, new)
            old = new = ""
            is_new = line.startswith("--- /dev/null") or (is_new and line.startswith("@@"))
        elif line.startswith("+++ "):
            name = line.split()[1].removeprefix("b/")
        else:
            old += line[1:] if line[0] in " -" else ""
            new += line[1:] if line[0] in " +" else ""


def is_applied(diff: str) -> bool:
    """Whether the package has the change already: `make walks` runs the tests on such a copy."""
    added = [line.removeprefix("+").rstrip("\n") for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    files = [ROOT / name.removeprefix("b/") for name in re.findall(r"^\+\+\+ (\S+)", diff, re.MULTILINE)]
    return all(map(Path.exists, files)) and set(added) <= {line for file in files for line in file.read_text().split("\n")}


def _stands(file: Path, old: str, new: str) -> bool:
    text = file.read_text()
    return old not in text and text.count(new) == 1


def renumbered(diff: str) -> str:
    """The diff with the numbers of lines that its hunks have in the package as it is: those that `git apply` and `patch` look at first."""
    lines, name, text, moved = diff.splitlines(keepends=True), "", "", 0
    for place, line in enumerate(lines):
        if line.startswith("--- "):
            name = line.split()[1].removeprefix("a/")
            text, moved = ("" if "/dev/null" in line else (ROOT / name).read_text()), 0
        elif line.startswith("@@") and text:
            hunk = list(takewhile(lambda each: each[0] in " +-" and not each.startswith("--- "), lines[place + 1 :]))
            old, new = ([each[1:] for each in hunk if each[0] != other] for other in "+-")
            assert "".join(old) in text, (
                f"a hunk of docs/worked/*.diff quotes lines that {name} doesn't have; mend it by hand:\n{''.join(old)}"
            )
            start = text[: text.index("".join(old))].count("\n") + 1
            lines[place] = f"@@ -{start},{len(old)} +{start + moved},{len(new)} @@{line.split('@@')[2]}"
            moved += len(new) - len(old)
    return "".join(lines)


def added_file(diff: str) -> str:
    """The text of the file that a diff adds."""
    lines = diff.split("--- a/")[0].splitlines(keepends=True)[3:]
    return "".join(line[1:] for line in lines)


def replace_once(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file.name} has {text.count(old)} places like this:\n{old}"
    file.write_text(text.replace(old, new))


def run_on(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code on the copy of the package in `folder`; the tests' own modules can be imported too."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT))), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
