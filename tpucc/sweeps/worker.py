"""A process that computes points: `python -m tpucc.sweeps.worker`, which `processes.py` starts.

It reads a pickled plan from standard input, then lists of points, and answers each point with a pickled pair of it and its row, and each
list with None. It ends where its input does.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys

from tpucc.sweeps.rows import measured
from tpucc.sweeps.shared import Compiler


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that started it, which then closes the input
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # code of the user's may print
        plan, compiler = pickle.load(sys.stdin.buffer), Compiler()
        while (points := _next()) is not None:
            for point in points:
                pickle.dump((point, measured(compiler, plan, point)), answers)
                answers.flush()
            pickle.dump(None, answers)
            answers.flush()


def _next() -> list[int] | None:
    try:
        found: list[int] = pickle.load(sys.stdin.buffer)
    except EOFError:
        return None
    return found


if __name__ == "__main__":
    main()
