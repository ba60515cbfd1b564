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
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic

from tpucc.tasks.work import Given, Result, Work

TRIES = 2
"""How many processes may end while they compute one task."""


def computed_by_processes(work: Work[Result], chunks: Sequence[Sequence[int]], given: Given, jobs: int) -> Iterator[tuple[int, Result]]:
    """The tasks of all chunks with their results, as they are done. A process that ends early is replaced; the task that it was at is tried
    once more, and is lost then."""
    pool = _Pool(work, deque(list(chunk) for chunk in chunks), given)
    threads = [Thread(target=pool.follow, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(sum(map(len, chunks))):
            found = pool.found.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        pool.end()


class _Pool(Generic[Result]):
    """What is to be done, and the processes that do it."""

    def __init__(self, work: Work[Result], chunks: deque[list[int]], given: Given) -> None:
        self.found = SimpleQueue[tuple[int, Result] | BaseException]()
        self._work, self._given = work, given
        self._chunks = chunks
        self._ended = Counter[int]()
        """Processes that ended at a task."""
        self._running = list[subprocess.Popen[bytes]]()
        self._lock = Lock()
        self._over = False

    def follow(self) -> None:
        """Keeps one process at work until nothing is left. It runs in a thread of its own."""
        try:
            while self._chunks and not self._over:
                self._serve(self._started())
        except Exception as error:
            self.found.put(error)

    def end(self) -> None:
        with self._lock:
            self._over = True
            for process in self._running:
                process.kill()
        for process in self._running:
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            words = [sys.executable, "-P", "-m", "tpucc.tasks.worker"]
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
            self._running.append(process)
        return process

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        """Gives a process chunk after chunk, until none is left or it ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        with process, suppress(BrokenPipeError):
            pickle.dump(self._work, process.stdin)
            while chunk := self._next():
                tasks = pickle.dumps([(number, self._given(number)) for number in chunk])
                try:
                    process.stdin.write(tasks)
                    process.stdin.flush()
                    while (found := pickle.load(process.stdout)) is not None:
                        chunk.remove(found[0])
                        self.found.put(found)
                except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                    process.kill()
                    self._lost(chunk, process.wait())
                    return

    def _next(self) -> list[int] | None:
        with suppress(IndexError):
            return self._chunks.popleft()
        return None

    def _lost(self, chunk: list[int], status: int) -> None:
        """A process has ended at the first task of what it had left."""
        if self._over or not chunk:
            return
        self._ended[chunk[0]] += 1
        if self._ended[chunk[0]] >= TRIES:
            self.found.put((chunk.pop(0), self._work.lost(f"the process that computed it ended: {_ending(status)}")))
        if chunk:
            self._chunks.appendleft(chunk)


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def environment() -> dict[str, str]:
    """This process's, with the tpucc that runs now. Each process has one thread for products: there are as many as processors."""
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}
