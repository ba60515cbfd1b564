"""Hostile files by the hundred, each given to the command line as a user would, in a process whose memory is limited.

`python -m tests.support.campaign KIND FIRST COUNT` tries the cases of these seeds and prints what went wrong, a line for each case: a
status that isn't one of `STATUSES`, more than `SECONDS`, or more than `MEGABYTES` of memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
STATUSES = (0, 1, 2, 3, 4)
"""All that a file may lead to; 5 would be a fault of ours. 1 says that values differ or that a source is wrong."""
SECONDS = 10
"""Of a processor's time, so that a busy machine fails nothing."""
MEGABYTES = 500
ADDRESSES = 3 * 2**29
"""Bytes that a process may address besides what it does at its beginning. A case that asks for more sees a MemoryError."""

Case = tuple[str, list[list[str]]]
"""What was changed, in words, and the command lines to try."""


def campaign(kind: str, first: int, count: int) -> list[str]:
    """What went wrong in the cases `first`… of a kind, tried in a process of their own."""
    arguments = [sys.executable, "-m", "tests.support.campaign", kind, str(first), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "TPUCC_DEBUG": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    died = [f"the process ended with {done.returncode}: {done.stderr[-500:]}"] if done.returncode else []
    return [*filter(None, done.stdout.split("\n")), *died]


class TooLong(BaseException):
    """A case has taken more than `SECONDS`."""


def faults(case: Case) -> Iterator[str]:
    """What goes wrong with the commands of one case."""
    changed, commands = case
    for command in commands:
        before, start = _megabytes(), time.process_time()
        said = _tried(command)
        if said:
            yield f"{changed}: tpucc {' '.join(command)}: {said}"
        if time.process_time() - start > SECONDS and not said:
            yield f"{changed}: tpucc {' '.join(command)}: {time.process_time() - start:.0f} s"
        if before < MEGABYTES < _megabytes():
            yield f"{changed}: tpucc {' '.join(command)}: {_megabytes():,.0f} MB"


def _tried(command: list[str]) -> str:
    """What is wrong with how a command line ends, if anything."""
    from tpucc.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    signal.setitimer(signal.ITIMER_PROF, 3 * SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(command)
    except TooLong:
        return f"more than {3 * SECONDS} s"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]!r} at {Path(place.filename).name}:{place.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if status not in STATUSES or (status and not (err.getvalue() + out.getvalue()).strip()):
        return f"status {status}, {err.getvalue()[-300:]!r}"
    return ""


def _megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _addressed() -> int:
    """Bytes that this process addresses: its libraries alone take a gigabyte."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 2**18
    return pages * resource.getpagesize()


def _too_long(_: int, __: FrameType | None) -> None:
    raise TooLong


def _main(kind: str, first: int, count: int) -> None:
    from tests.support.hostile_files import CASES

    case: Callable[[random.Random], Case] = CASES[kind]
    most = _addressed() + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGPROF, _too_long)
    for seed in range(first, first + count):
        for fault in faults(case(random.Random(seed))):
            print(f"{kind} {seed}: {fault}", flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
