"""A process that computes points: `python -m tpucc.sweeps.worker`, which `processes.py` starts.

It reads a pickled plan from standard input, then lists of points, and answers each point with a pickled pair of it and its row, and each
list with None. It ends where its input does, or where nobody reads its answers.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator

from tpucc.sweeps.processes import Found
from tpucc.sweeps.rows import measured
from tpucc.sweeps.shared import Compiler


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that started it, which then ends it
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # code of the user's may print
    try:
        for answer in _answers():
            answers.write(pickle.dumps(answer))
    except BrokenPipeError:
        os._exit(1)  # the command was killed


def _answers() -> Iterator[Found | None]:
    plan, compiler = pickle.load(sys.stdin.buffer), Compiler()
    for points in _lists():
        yield from ((point, measured(compiler, plan, point)) for point in points)
        yield None


def _lists() -> Iterator[list[int]]:
    while True:
        try:
            yield pickle.load(sys.stdin.buffer)
        except EOFError:
            return


if __name__ == "__main__":
    main()
