"""The process that grades one submission: `python -m tpucc.labs.grader_process`, which `workers.py` starts.

It reads a pickled pair of the class's grading and the submission's contents from standard input, so that neither the seed nor a submission
stands in a command or in a file. After every test it writes all results so far to standard output, as a line of JSON; `{"left": …}` says
why no other submission may be graded. SIGINT, SIGTERM, and the end of the process that reads the results end it with all that it started.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from tpucc.guest.leftover_files import Left
from tpucc.labs import find
from tpucc.labs.grading import Grade, grade_contents
from tpucc.labs.results import as_json
from tpucc.tasks.worker import when_unread

ENDING = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    for number in ENDING:
        signal.signal(number, _interrupted)  # the worker that started it ignores Ctrl-C
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    when_unread(results.fileno(), lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM))
    os.dup2(2, 1)
    grade_one(sys.stdin.buffer.read(), results.write)


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the submission and takes away its files, once: a second signal would leave some."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def grade_one(asked: bytes, write: Callable[[bytes], object]) -> None:
    """Grades the submission of a pickled pair, and writes lines."""

    def follow(sofar: Grade) -> None:
        write(json.dumps(as_json(sofar, details=True)).encode() + b"\n")

    grading, contents = pickle.loads(asked)
    try:
        grade_contents(find(str(grading.lab)), contents, grading.seed, grading.jail, (), follow)
    except Left as left:
        write(json.dumps({"left": left.diagnostics[0].message}).encode() + b"\n")


if __name__ == "__main__":
    main()
