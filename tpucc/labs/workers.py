"""The graders of a class: each submission is graded by a process of its own, so that whatever happens there the others go on.

This file is that process, too: `python -m tpucc.labs.workers` reads from standard input what it is `Asked`, pickled, so that neither the
seed nor a submission stands in a command or in a file. After every test it writes all results so far to standard
output, as a line of JSON; `{"left": …}` says why no other submission may be graded. SIGINT, SIGTERM, and the end of the process that reads
the results end it with all that it started. After that process's end it takes away the workshop, too, which all graders of a class share.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from tpucc.guest.jails import Jail
from tpucc.guest.leftover_files import Left
from tpucc.labs import find
from tpucc.labs.grading import Contents, Grade, grade_contents
from tpucc.labs.results import as_json
from tpucc.tasks.processes import environment
from tpucc.tasks.worker import when_unread

LONGEST = 600
"""Seconds after which one submission's grader is ended: what it has found until then counts. The submission itself has less, `child.START`
and by the clock `child.BUDGET`; the rest is for judging."""
GRACE = 10
"""Seconds in which a grader ends what it has started."""
ENDING = (signal.SIGINT, signal.SIGTERM)
Results = dict[str, Any]
"""What `results.json` has of a submission."""


def ungraded(problem: str) -> Results:
    """The results of a submission that wasn't graded."""
    return {"score": 0, "max_score": 100, "output": problem, "tests": [], "extra_data": {}}


class Graders:
    """Graders of submissions, `jobs` at a time. To be closed."""

    def __init__(self, lab: int, seed: int, jail: Jail, jobs: int, shared: Path | None = None) -> None:
        """`shared` is the class's workshop (`cells.workshop`); without it each grader makes its own."""
        self._asked = lab, seed, jail, shared
        self._pool = ThreadPoolExecutor(max(1, jobs))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def results(self, numbers: Sequence[int], given: Callable[[int], Contents]) -> Iterator[tuple[int, Results]]:
        """The results of submissions by their numbers, each as soon as it is graded; `given` reads one, in any thread."""
        futures = {self._pool.submit(self._graded, given, number): number for number in numbers}
        for future in as_completed(futures):
            yield futures[future], future.result()

    def close(self) -> None:
        """Lets graders that still run end their submissions and take away their files; kills those that don't."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in list(self._running):
            process.terminate()
        self._pool.shutdown()

    def _graded(self, given: Callable[[int], Contents], number: int) -> Results:
        """The last results of a submission's grader, in bounds of time."""
        lines, problem = self._run(pickle.dumps((*self._asked, given(number))))
        whole = lines.split(b"\n")[:-1]
        return dict(json.loads(whole[-1])) if whole else ungraded(problem or "the grader ended without results")

    def _run(self, asked: bytes) -> tuple[bytes, str]:
        """Runs a grader; returns the lines of its results, and what else it says."""
        words, pipe = [sys.executable, "-P", "-m", "tpucc.labs.workers"], subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
            self._running.add(process)
            try:
                results, said = process.communicate(asked, timeout=0 if self._closed else LONGEST)
            except subprocess.TimeoutExpired as late:
                return late.stdout or b"", f"the grader took longer than {LONGEST} s"
            finally:
                self._running.discard(process)
                _end(process)
        return results, said.decode("utf-8", "replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()


def main() -> None:
    for number in ENDING:
        signal.signal(number, _interrupted)
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    alone = threading.Event()

    def end() -> None:
        alone.set()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    when_unread(results.fileno(), end)
    os.dup2(2, 1)
    asked = pickle.load(sys.stdin.buffer)
    try:
        grade_one(asked, results.write)
    finally:
        if alone.is_set() and asked[3] is not None:
            shutil.rmtree(asked[3], ignore_errors=True)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the submission and takes away its files, once: a second signal would leave some."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


Asked = tuple[int, int, Jail, Path | None, Contents]
"""The number of a lab, the seed, the jail, the workshop and the submission."""


def grade_one(asked: Asked, write: Callable[[bytes], object]) -> None:
    """Grades the submission that is asked for, and writes lines."""

    def follow(sofar: Grade) -> None:
        write(json.dumps(as_json(sofar, details=True)).encode() + b"\n")

    lab, seed, jail, shared, contents = asked
    try:
        grade_contents(find(str(lab)), contents, seed, jail, (), follow, shared)
    except Left as left:
        write(json.dumps({"left": left.diagnostics[0].message}).encode() + b"\n")


if __name__ == "__main__":
    main()
