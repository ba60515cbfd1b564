"""The graders of a class: each submission is graded by a process of its own, so that whatever happens there the others go on.

This file is what they are copies of, too: `python -m tpucc.labs.workers` imports what graders need, and reads from standard input what it
is `Asked`, pickled, behind its number of bytes, so that neither the seed nor a submission stands in a command or in a file. Each submission
is graded in a copy of this process, where the system can copy one. After every test the results so far go to standard output, as a line of
JSON; `{"left": …}` says why no other submission may be graded; an empty line ends them. SIGINT, SIGTERM, and the end of the process that
reads the results end it with all that it started. After that process's end it takes away the workshop, which all graders of a class share.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, BinaryIO, NoReturn

from tpucc.guest.jails import Jail
from tpucc.guest.leftover_files import Left
from tpucc.labs import find
from tpucc.labs.grading import Contents, Grade, grade_contents
from tpucc.labs.results import as_json
from tpucc.tasks.forked import can_fork
from tpucc.tasks.processes import environment

LONGEST = 600
"""Seconds after which one submission's grader is ended: what it has found until then counts. The submission itself has less, `child.START`
and by the clock `child.BUDGET`; the rest is for judging."""
GRACE = 10
"""Seconds in which a grader ends what it has started."""
ENDING = (signal.SIGINT, signal.SIGTERM)
MOST_SAID = 2**16
"""Bytes of what a grader writes to standard error that are told."""
SIZE, END = 8, b"\n"
"""The bytes of the number before what is asked, and the line after the results."""
Asked = tuple[int, int, Jail, Path | None, Contents]
"""The number of a lab, the seed, the jail, the workshop and the submission."""
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
        self._running: set[_Process] = set()
        self._idle = SimpleQueue[_Process]()
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
        for process in self._running:
            process.close()

    def _graded(self, given: Callable[[int], Contents], number: int) -> Results:
        """The last results of a submission's grader, in bounds of time."""
        lines, problem = self._run(pickle.dumps((*self._asked, given(number))))
        whole = lines.split(b"\n")[:-1]
        return dict(json.loads(whole[-1])) if whole else ungraded(problem or "the grader ended without results")

    def _run(self, asked: bytes) -> tuple[bytes, str]:
        """Gives a process a submission; returns the lines of its results, and what else it says."""
        process = self._process()
        timer = threading.Timer(0 if self._closed else LONGEST, process.stop, [f"the grader took longer than {LONGEST} s"])
        timer.start()
        lines, whole = process.answer(asked)
        timer.cancel()
        said = process.said()
        if whole and not process.ended:
            self._idle.put(process)
        else:
            process.close()
            self._running.discard(process)
        return lines, process.ended or said

    def _process(self) -> _Process:
        """One that has nothing to do, or a new one."""
        try:
            return self._idle.get_nowait()
        except Empty:
            process = _Process()
            self._running.add(process)
            return process


class _Process:
    """A process that grades one submission after the other."""

    def __init__(self) -> None:
        words, pipe = [sys.executable, "-P", "-m", "tpucc.labs.workers"], subprocess.PIPE
        self.ended = ""
        """Why it was ended; nothing while it wasn't, or for no reason of its own."""
        self._errors, self._read = tempfile.TemporaryFile(), 0  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment())
        self.terminate = self._process.terminate

    def answer(self, asked: bytes) -> tuple[bytes, bool]:
        """The lines of the results of a submission, and whether they are all there are."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        lines = list[bytes]()
        with suppress(OSError, ValueError):  # it has ended
            self._process.stdin.write(len(asked).to_bytes(SIZE) + asked)
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line == END:
                    return b"".join(lines), True
                lines.append(line)
        return b"".join(lines), False

    def said(self) -> str:
        """What it has written to standard error since this was asked."""
        found = os.pread(self._errors.fileno(), MOST_SAID, self._read)  # which leaves the place where it writes
        self._read += len(found)
        return found.decode("utf-8", "replace").strip()

    def stop(self, why: str = "") -> None:
        """Ends it with all that it started; any thread may."""
        self.ended = self.ended or why
        self._process.terminate()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def close(self) -> None:
        self.stop()
        with suppress(OSError):  # what was asked isn't read any more
            self._process.__exit__(None, None, None)
        self._errors.close()


def main() -> None:
    for number in ENDING:
        signal.signal(number, _interrupted)
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    shared = None
    while size := int.from_bytes(sys.stdin.buffer.read(SIZE)):
        asked: Asked = pickle.loads(sys.stdin.buffer.read(size))
        shared = asked[3]
        if not _grade_apart(asked, results):
            break
        results.write(END)
    if shared is not None:  # nobody asks any more, nor has ended this process: who did has ended
        shutil.rmtree(shared, ignore_errors=True)


def _grade_apart(asked: Asked, results: BinaryIO) -> bool:
    """Grades a submission in a copy of this process, and ends it when nobody reads the results any more: False then. Where no process can
    be copied, it is graded here."""
    if not can_fork():
        grade_one(asked, results.write)
        return True
    find(str(asked[0]))  # imports the lab, once
    ended, held = os.pipe()
    if not (grader := os.fork()):
        _be_grader(asked, results)
    os.close(held)
    watched, unread = select.poll(), True
    watched.register(ended, select.POLLIN)
    watched.register(results, 0)  # what is always told of a pipe: that its other end is closed
    try:
        unread = any(place == results.fileno() for place, _ in watched.poll())
    finally:
        if unread:
            os.kill(grader, signal.SIGTERM)
        os.waitpid(grader, 0)
        os.close(ended)
    return not unread


def _be_grader(asked: Asked, results: BinaryIO) -> NoReturn:
    """What the copy does, and nothing else."""
    try:
        grade_one(asked, results.write)
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the submission and takes away its files, once: a second signal would leave some."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


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
