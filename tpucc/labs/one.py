"""The process that grades one submission: `python -m tpucc.labs.one`, which `workers.py` starts.

It reads a pickled pair of the class's grading and the submission's contents from standard input, so that neither the seed nor a submission
stands in a command or in a file. After every test it writes all results so far to standard output, as a line of JSON; `{"left": …}` says
why no other submission may be graded.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from collections.abc import Callable

from tpucc.labs import find
from tpucc.labs.grading import Grade, grade_contents
from tpucc.labs.remains import Left
from tpucc.labs.results import as_json


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the worker that started it ignores Ctrl-C
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    grade_one(sys.stdin.buffer.read(), results.write)


def grade_one(asked: bytes, write: Callable[[bytes], object]) -> None:
    """Grades the submission of a pickled pair, and writes lines."""

    def follow(sofar: Grade) -> None:
        write(json.dumps(as_json(sofar, details=True)).encode() + b"\n")

    grading, contents = pickle.loads(asked)
    try:
        grade_contents(find(str(grading.lab)), contents, grading.term, grading.seed, grading.jail, (), follow)
    except Left as left:
        write(json.dumps({"left": left.diagnostics[0].message}).encode() + b"\n")


if __name__ == "__main__":
    main()
