"""A process that computes tasks: `python -m tpucc.tasks.worker`, which `processes.py` starts.

It reads pickled work from standard input, then lists of tasks, and answers each task with a pickled pair of its number and its result, and
each list with None. It ends where its input does, or where nobody reads its answers.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, BinaryIO

NORMAL_END = 1.0
"""Seconds in which a worker ends by itself when the command that started it has closed its pipes."""


def main() -> None:
    serve(sys.stdin.buffer, os.dup(1))


def serve(requests: BinaryIO, answers: int) -> None:
    """Answers on a descriptor until the requests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that started it, which then ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(2, 1)  # code of the user's may print
    when_unread(answers, _end)
    try:
        with os.fdopen(answers, "wb", buffering=0) as stream:
            for answer in _answers(requests):
                stream.write(pickle.dumps(answer))
    except BrokenPipeError:
        os._exit(1)  # the command was killed


def when_unread(pipe: int, then: Callable[[], object]) -> None:
    """Calls `then`, in a thread of its own, once nobody can read a pipe any more: whoever started this process has ended, even by SIGKILL.
    Windows can't ask that of a pipe."""
    if not hasattr(select, "poll"):
        return
    closed = select.poll()
    closed.register(pipe, 0)  # what is always told of a pipe: that its other end is closed
    Thread(target=lambda: (closed.poll(), then()), daemon=True).start()


def _end() -> None:
    time.sleep(NORMAL_END)
    os._exit(1)  # the command was killed while a task is computed


def _answers(requests: BinaryIO) -> Iterator[tuple[int, Any] | None]:
    work = pickle.load(requests)
    gc.enable()
    gc.freeze()
    compute = work.begun()
    for tasks in _lists(requests):
        yield from ((number, compute(given)) for number, given in tasks)
        yield None


def _lists(requests: BinaryIO) -> Iterator[list[tuple[int, Any]]]:
    while True:
        try:
            yield pickle.load(requests)
        except EOFError:
            return


if __name__ == "__main__":
    gc.disable()  # importing makes what stays: looking through it finds nothing
    main()
