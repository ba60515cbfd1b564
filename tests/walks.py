"""`make walks`: each change that docs/adding.md shows is applied to a copy of the project, and then all tests pass there.

`python tests/walks.py operator` tries one, several names try those, and without a name all are tried in turn. In the copy the pages that
follow from the code are written, as `make docs` does: an operator has a page, an instruction a row. Then the tests of `make test` must
pass, and a second look must find nothing left to write. The tests themselves aren't changed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copy2

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.worked import WORKED, apply_diff  # noqa: E402 - the project's folder is on the path from here on

PAGES = ["docs/generate.py", "--quick"]
STEPS: Sequence[Sequence[str]] = (
    PAGES,
    ("-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not long", "-p", "no:cacheprovider"),
    (*PAGES, "--check"),
)
"""What Python runs in the copy, in this order."""


def main(words: Sequence[str]) -> int:
    names = sorted(path.stem for path in WORKED.glob("*.diff"))
    parser = argparse.ArgumentParser(description="Applies the changes of docs/adding.md to a copy, and runs all tests there.")
    parser.add_argument("names", nargs="*", metavar="WALK", help=f"{', '.join(names)}; without one, all in turn")
    asked = parser.parse_args(words).names or names
    if unknown := set(asked) - set(names):
        parser.error(f"there is no walk {', '.join(sorted(unknown))}: they are {', '.join(names)}")
    return sum([not walk(name) for name in asked])


def walk(name: str) -> bool:
    """Whether all tests pass after the change. What a step that fails says is printed."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        copy_project(Path(folder))
        apply_diff(Path(folder), (WORKED / f"{name}.diff").read_text())
        environment = {**os.environ, "PYTHONPATH": folder}
        for step in STEPS:
            done = subprocess.run([sys.executable, *step], cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stdout[-20_000:], done.stderr[-5_000:], f"{name}: python {' '.join(step)} failed", sep="\n", flush=True)
                return False
            closing = (done.stdout.strip().splitlines() or [""])[-1]
            if "pytest" in step:
                print(f"{name}: {closing}", flush=True)
    print(f"{name}: {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    return True


def copy_project(folder: Path) -> None:
    """The files that are committed or will be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy2(ROOT / name, folder / name)
    for words in (["init", "--quiet"], ["add", "--all"]):  # tests ask which files are the project's
        subprocess.run(["git", *words], cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
