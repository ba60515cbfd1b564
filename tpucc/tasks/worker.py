"""A process that computes tasks: `python -m tpucc.tasks.worker`, which `processes.py` starts.

It reads pickled work from standard input, then lists of tasks, and answers each task with a pickled pair of its number and its result, and
each list with None. It ends where its input does, or where nobody reads its answers.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that started it, which then ends it
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # code of the user's may print
    try:
        for answer in _answers():
            answers.write(pickle.dumps(answer))
    except BrokenPipeError:
        os._exit(1)  # the command was killed


def _answers() -> Iterator[tuple[int, Any] | None]:
    compute = pickle.load(sys.stdin.buffer).begun()
    for tasks in _lists():
        yield from ((number, compute(given)) for number, given in tasks)
        yield None


def _lists() -> Iterator[list[tuple[int, Any]]]:
    while True:
        try:
            yield pickle.load(sys.stdin.buffer)
        except EOFError:
            return


if __name__ == "__main__":
    main()
