"""What every program compiles to on every target: hash of the .tpub, cycles, size of the report.

    python benchmarks/fingerprints.py > before.tsv
    …change something…
    python benchmarks/fingerprints.py > after.tsv && diff before.tsv after.tsv

One line a program, target and level: name, target, level, the first 16 digits of the .tpub's SHA-256, cycles, the sizes of .tpub and report
in bytes; or the code of the error, where a program doesn't fit a target. `--without-report` is a third of the time.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import tpucc

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(
    str(path.relative_to(ROOT)) for folder in ("programs", "programs/paper", "tests/programs") for path in (ROOT / folder).glob("*.tpu")
)
TARGETS = sorted(path.stem for path in Path(tpucc.__file__).parent.glob("targets/*.toml"))
LEVELS = (0, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-report", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    arguments = parser.parse_args()
    cases = [(*case, not arguments.without_report) for case in product(arguments.programs, TARGETS, LEVELS)]
    with ProcessPoolExecutor(arguments.workers) as pool:
        for line in pool.map(fingerprint, cases):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


def fingerprint(case: tuple[str, str, int, bool]) -> str:
    """The line of one case."""
    name, target, level, report = case
    return "\t".join(map(str, (name, target, f"-O{level}", *_columns(ROOT / name, target, level, report))))


def _columns(path: Path, target: str, level: int, report: bool) -> Iterator[object]:
    try:
        executable = tpucc.compile(path, target=target, level=level)
    except tpucc.Error as error:
        yield error.diagnostics[0].code
        return
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "program.tpub"
        executable.save(saved)
        content = saved.read_bytes()
    yield hashlib.sha256(content).hexdigest()[:16]
    yield executable.stats["cycles"]
    yield len(content)
    if report:
        yield len(executable.report().html)


if __name__ == "__main__":
    main()
