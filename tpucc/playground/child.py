"""A process that answers requests, one a line, until its input ends: `python -m tpucc.playground.child`. Ending it stops what it runs."""

from __future__ import annotations

import sys

from tpucc.playground.engine import answered


def main() -> None:
    for request in sys.stdin.buffer:
        sys.stdout.buffer.write(answered(request) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
