"""Tasks computed by processes of this machine, each of which gets some at a time."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, Generic

from tpucc.tasks.forked import Forked, can_fork
from tpucc.tasks.work import Given, Result, Work

Process = subprocess.Popen[bytes] | Forked
TRIES = 2
"""How many processes may end while they compute one task."""


def computed_by_processes(work: Work[Result], chunks: Sequence[Sequence[int]], given: Given, jobs: int) -> Iterator[tuple[int, Result]]:
    """The tasks of all chunks with their results, as they are done. A process that ends early is replaced; the task that it was at is tried
    once more, and is lost then."""
    tasks = [number for chunk in chunks for number in chunk]
    pool = _Pool(work, Shares(tasks, jobs, max(map(len, chunks))), given)
    begun = [pool.started(forked=True) for _ in range(jobs)] if can_fork() else [None] * jobs  # before there are threads
    threads = [Thread(target=pool.follow, args=each, daemon=True) for each in enumerate(begun)]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            found = pool.found.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        pool.end()


class _Pool(Generic[Result]):
    """What is to be done, and the processes that do it."""

    def __init__(self, work: Work[Result], shares: Shares, given: Given) -> None:
        self.found = SimpleQueue[tuple[int, Result] | BaseException]()
        self._work, self._given = work, given
        self._shares = shares
        self._ended = Counter[int]()
        """Processes that ended at a task."""
        self._running = list[Process]()
        self._lock = Lock()
        self._over = False

    def follow(self, place: int, process: Process | None) -> None:
        """Keeps one process at work, and others after it, until nothing is left. It runs in a thread of its own."""
        try:
            while (chunk := self._shares.next(place)) and not self._over:
                self._serve(process or self.started(), place, chunk)
                process = None
            if process is not None:  # there was nothing for it
                process.__exit__(None, None, None)
        except Exception as error:
            self.found.put(error)

    def end(self) -> None:
        with self._lock:
            self._over = True
            for process in self._running:
                process.kill()
        for process in self._running:
            process.wait()

    def started(self, forked: bool = False) -> Process:
        with self._lock:
            words = [sys.executable, "-P", "-m", "tpucc.tasks.worker"]
            pipe = subprocess.PIPE
            process = Forked() if forked else subprocess.Popen(words, stdin=pipe, stdout=pipe, env=environment())
            self._running.append(process)
        return process

    def _serve(self, process: Process, place: int, chunk: list[int]) -> None:
        """Gives a process some tasks after the others, until none is left or it ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        with process, suppress(BrokenPipeError):
            try:
                pickle.dump(self._work, process.stdin)
                while chunk:
                    process.stdin.write(pickle.dumps([(number, self._given(number)) for number in chunk]))
                    process.stdin.flush()
                    for found in _answers(process.stdout, chunk):
                        chunk.remove(found[0])
                        self.found.put(found)
                    chunk = self._shares.next(place)
            except (BrokenPipeError, EOFError):
                process.kill()
                self._lost(place, chunk, f"ended: {_ending(process.wait())}")
            except _NoAnswer:
                process.kill()
                process.wait()
                self._lost(place, chunk, "gave no answer: does a pass or a stage write where it shouldn't?")

    def _lost(self, place: int, chunk: list[int], how: str) -> None:
        """A process has ended at the first task of what it had left."""
        if self._over or not chunk:
            return
        self._ended[chunk[0]] += 1
        if self._ended[chunk[0]] >= TRIES:
            self.found.put((chunk.pop(0), self._work.lost(f"the process that computed it {how}")))
        self._shares.give_back(place, chunk)


class _NoAnswer(Exception):
    """What a process wrote is no answer to what it was asked: code of the user's writes there."""


def _answers(stream: IO[bytes], asked: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The answers to tasks, until all are there. Raises `_NoAnswer`, and `EOFError` where the process has ended."""
    while True:
        try:
            found = pickle.load(stream)
        except EOFError:
            raise
        except Exception as error:  # of bytes that are nobody's pickle anything may be raised
            raise _NoAnswer from error
        if found is None:
            return
        if type(found) is not tuple or len(found) != 2 or found[0] not in asked:
            raise _NoAnswer
        yield found


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def environment() -> dict[str, str]:
    """This process's, with the tpucc that runs now. Each process has one thread for products: there are as many as processors."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}


# Tasks in an order in which neighbours share work, divided among processes that are not equally fast.


PARTS = 8
"""A process gets this part of what is left of its share at a time: the last ones get one task each, and end at about the same time."""


class Shares:
    """Each process has a share of neighbours and gets some from its beginning; one that has none left takes over the later half of the
    longest other share. So what neighbours have in common is made again only where two shares meet. Threads may call it."""

    def __init__(self, tasks: Sequence[int], processes: int, longest: int) -> None:
        """At most `longest` tasks are given at a time."""
        places = [len(tasks) * process // processes for process in range(processes + 1)]
        self._shares = [deque(tasks[start:end]) for start, end in pairwise(places)]
        self._longest = longest
        self._lock = Lock()

    def next(self, process: int) -> list[int]:
        """The tasks that a process gets next; none where nothing is left."""
        with self._lock:
            own = self._shares[process]
            if not own:
                most = max(self._shares, key=len)
                own.extendleft(most.pop() for _ in range((len(most) + 1) // 2))
            count = min(len(own), self._longest, max(1, len(own) // PARTS))
            return [own.popleft() for _ in range(count)]

    def give_back(self, process: int, tasks: Sequence[int]) -> None:
        """Puts back what a process didn't do."""
        with self._lock:
            self._shares[process].extendleft(reversed(tasks))
