"""A process that answers requests, one a line, until its input ends: `python -m tpucc.playground.child`. Ending it stops what it runs.

Before an answer come lines that begin with `HEARD`, each with a text that the visitor's code has printed, as JSON.
"""

from __future__ import annotations

import json
import os

from tpucc.playground import HEARD
from tpucc.playground.engine import answered


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # code of the visitor's may read
    os.dup2(2, 1)  # and print

    def send(line: bytes) -> None:
        answers.write(line + b"\n")
        answers.flush()

    for request in requests:
        send(answered(request, lambda text: send(HEARD + json.dumps(text).encode())))


if __name__ == "__main__":
    main()
