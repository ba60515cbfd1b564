"""A process that answers requests, one a line, until its input ends: `python -m tpucc.playground.child`. Ending it stops what it runs."""

from __future__ import annotations

import os

from tpucc.playground.engine import answered


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # code of the visitor's may read
    os.dup2(2, 1)  # and print
    for request in requests:
        answers.write(answered(request) + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
