"""`make soak`: all tests with every case of each kind, and the random ones at length, part by part.

Each part is a run of pytest of its own, which takes less than an hour on two processors. All parts share one seed, another one each time,
from which random tests draw. The last two parts are scripts that run pytest several times: as if on other processors, and with other
versions of packages. The summary at the end says what was run, on which processor and with which seed.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.support.seeds import LARGEST  # noqa: E402 - the project's folder is on the path from here on

FOLDERS = ("unit", "differential", "labs", "browser")
RANDOM = "tests/differential/test_random_*.py"
PARTS: Mapping[str, Sequence[str]] = {
    **{name: (f"tests/{name}",) for name in FOLDERS},
    "differential": ("tests/differential", f"--ignore-glob={RANDOM}"),
    "random": tuple(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(RANDOM))),
    "rest": ("tests", *(f"--ignore=tests/{name}" for name in FOLDERS)),
}
"""What pytest gets for each part: folders of `tests`, and all that is in none of them."""
SCRIPTS: Mapping[str, Sequence[str]] = {"processors": ("tests/processors.py", "--all"), "versions": ("tests/versions.py",)}
"""What Python gets for the parts that aren't one run of pytest."""
CLOSING = re.compile(r"\d (?:passed|failed|skipped|errors?)\b.* in [\d.]+s\b|^[\d,]+ random cases, of seed")


@dataclass(frozen=True)
class Result:
    """What the closing lines of a part say; `status` is that of pytest, or of the script."""

    part: str
    status: int
    passed: int
    failed: int
    skipped: int
    cases: int
    minutes: float


def main(words: Sequence[str]) -> int:
    parts = [*PARTS, *SCRIPTS]
    parser = argparse.ArgumentParser(description="Runs the long tests, part by part.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; without one, all in turn")
    parser.add_argument("--seed", type=int, help=f"1 to {LARGEST:,}: the cases of another run; else new ones")
    parser.add_argument("--share", type=int, default=25, help="of a hundred random cases run so many; 100 takes three times as long")
    parser.add_argument("-n", "--workers", default="2", help="processes of each part")
    asked = parser.parse_args(words)
    if unknown := set(asked.parts) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: the parts are {', '.join(parts)}")
    seed = asked.seed or random.randint(1, LARGEST)
    print(f"seed {seed}", flush=True)
    results = [run(part, seed, asked.share, asked.workers) for part in asked.parts or parts]
    print(summary(results, seed))
    return int(any(result.status for result in results))


def run(part: str, seed: int, share: int, workers: str) -> Result:
    """Runs one part, and shows what it prints."""
    print(f"\n== {part}", flush=True)
    drawn = ("--seed", str(seed), "--share", str(share))
    tests = ("-m", "pytest", "-n", workers, "--dist", "worksteal", "--soak", *drawn, *PARTS.get(part, ()))
    command = [sys.executable, *SCRIPTS.get(part, tests)]
    started, said = time.monotonic(), []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            said.append(line)
    return result_of(part, running.returncode, "".join(filter(CLOSING.search, said)), (time.monotonic() - started) / 60)


def result_of(part: str, status: int, closing: str, minutes: float) -> Result:
    """The result of a part by the last lines of its runs of pytest."""

    def number(pattern: str) -> int:
        return sum(int(found.replace(",", "")) for found in re.findall(rf"([\d,]+) {pattern}", closing))

    failed = number("failed") + number("errors?")
    return Result(part, status, number("passed"), failed, number("skipped"), number("random cases"), minutes)


def summary(results: Sequence[Result], seed: int) -> str:
    """A table with a row for each part, and a line about the run."""
    heads = ("part", "passed", "failed", "skipped", "random cases", "minutes")
    rows = [(r.part, f"{r.passed:,}", f"{r.failed:,}", f"{r.skipped:,}", f"{r.cases:,}", f"{r.minutes:.1f}") for r in results]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    table = ["  ".join(text.ljust(width) if not at else text.rjust(width) for at, (text, width) in enumerate(zip(row, widths, strict=True)))
             for row in (heads, *rows)]  # fmt: skip
    stopped = [f"{r.part} ended with status {r.status}" for r in results if r.status and not r.failed]
    return "\n".join(["", *table, *stopped, f"seed {seed}, on {processor()}, {os.cpu_count()} processors"])


def processor() -> str:
    """The processor's name."""
    try:
        names = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = None
    return names[1] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
