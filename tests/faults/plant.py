"""Plants one fault after the other in a copy of the project, and runs the tests that are to catch it, as `make test` does. `make faults`
runs it.

    python tests/faults/plant.py [WORD …] [--quick]

WORDs choose the faults that have one of them in their name or path. `--quick` runs what `make quick` runs instead of each fault's own
tests. Exits with 1 when a fault is not caught, or can't be planted.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("faults.toml")
PATIENCE = 300
"""Seconds after which tests that still run have met an endless loop: the fault is caught."""
TESTS_FAILED, WRONG_USE = 1, 4
"""Pytest's exit status; others than the first say that it could not run, which catches nothing."""
ENDLESS = "no end"


@dataclass(frozen=True)
class Fault:
    """A text of tpucc and what stands in its place; `under` is a file, or a folder of them. Paths are relative to the project's folder."""

    name: str
    under: str
    old: str
    new: str
    tests: tuple[str, ...]

    def place(self, root: Path) -> Path:
        """The file to change. Raises `ValueError` when the text isn't there exactly once."""
        under = root / self.under
        files = [under] if under.is_file() else sorted(under.rglob("*.py"))
        found = [path for path in files for _ in range(path.read_text("utf-8").count(self.old))]
        if len(found) != 1:
            raise ValueError(f"{self.under} has the text {len(found)} times; write its new text into tests/faults/faults.toml: {self.old}")
        return found[0]


def faults() -> tuple[Fault, ...]:
    """The list, in its order."""
    entries = tomllib.loads(LIST.read_text("utf-8"))["fault"]
    return tuple(Fault(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries)


def main(arguments: Sequence[str]) -> int:
    words = [word for word in arguments if not word.startswith("--")]
    chosen = [fault for fault in faults() if not words or any(word in f"{fault.name} {fault.under}" for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        _copy(copy)
        missed = [fault for fault in chosen if not _is_caught(fault, copy, quick="--quick" in arguments)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults are caught")
    return 1 if missed else 0


def _write(path: Path, text: str) -> None:
    """Writes a module, and takes away its compiled one: Python takes that for the new text's if both are of one second and one size."""
    path.write_text(text, "utf-8")
    Path(cache_from_source(path)).unlink(missing_ok=True)


def _is_caught(fault: Fault, copy: Path, *, quick: bool) -> bool:
    """Plants the fault, runs the tests, and takes it out again; prints a line."""
    try:
        path = fault.place(copy)
    except ValueError as reason:
        print(f"can't be planted: {fault.name} ({reason})", flush=True)
        return False
    before, started = path.read_text("utf-8"), time.monotonic()
    _write(path, before.replace(fault.old, fault.new))
    try:
        failed = _failed(copy, said_by("quick") if quick else [*fault.tests, *said_by("test"), "-n", "0"])
    finally:
        _write(path, before)
    caught = failed == ENDLESS or (bool(failed) and not _failed(copy, [failed, "-n", "0"]))
    by = "no test" if not failed else failed if caught else f"{failed} fails without the fault too"
    print(f"{'caught' if caught else 'MISSED'}  {time.monotonic() - started:5.1f} s  {fault.under}: {fault.name} ({by})", flush=True)
    return caught


def _failed(copy: Path, options: Sequence[str]) -> str:
    """The first test that fails, itself or in its fixtures, or `ENDLESS`; nothing when all pass, or none could run."""
    command = [sys.executable, "-m", "pytest", "-x", "--no-header", "-p", "no:cacheprovider", *options]
    try:
        ran = subprocess.run(command, cwd=copy, env=_environment(copy), capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return ENDLESS
    if ran.returncode == WRONG_USE:
        raise RuntimeError(f"pytest doesn't take {shlex.join(command)}: {ran.stderr}")
    first = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    return first[1] if first and ran.returncode == TESTS_FAILED else ""


def said_by(target: str) -> list[str]:
    """What `make quick` or `make test` says to pytest."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = re.search(rf"^{target}:.*\n\t\$\(BIN\)/python -m pytest (.*)", makefile, re.MULTILINE)
    assert recipe is not None
    return shlex.split(re.sub(r"\$\(\w*WORKERS\)", os.environ.get("WORKERS", "2"), recipe[1]))


def _copy(folder: Path) -> None:
    """The files that git knows, or would take, as they are now."""
    for name in _files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)


def _files() -> Iterator[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return (name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def _environment(copy: Path) -> dict[str, str]:
    """The copy comes before an installed tpucc. Compiled modules are kept, so that only the changed file is compiled again."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": str(copy)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
