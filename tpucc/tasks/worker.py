"""A process that computes tasks: `python -m tpucc.tasks.worker`, which `processes.py` starts.

It reads pickled work from standard input, then lists of tasks, and answers each task with a pickled pair of its number and its result, and
each list with None. It ends where its input does, or where nobody reads its answers.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO


def main() -> None:
    serve(sys.stdin.buffer, os.dup(1))


def serve(requests: BinaryIO, answers: int) -> None:
    """Answers on a descriptor until the requests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that started it, which then ends it
    os.dup2(2, 1)  # code of the user's may print
    try:
        with os.fdopen(answers, "wb", buffering=0) as stream:
            for answer in _answers(requests):
                stream.write(pickle.dumps(answer))
    except BrokenPipeError:
        os._exit(1)  # the command was killed


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
