"""Starts a child: this file is run by its path, with what the child is told as JSON.

Nothing can be imported before the child's folders are on Python's path. The two ends of the conversation get other numbers; standard input
is empty from then on, and standard output is standard error. `{"end": USER}` ends every process of a user instead.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import BinaryIO


def main() -> None:
    config = json.loads(sys.argv[1])
    if "end" in config:
        _end_all(config["end"])
        return
    requests, answers = _streams()
    sys.path[:] = [*config["paths"], *sys.path] if config["isolated"] else config["paths"]
    sys.dont_write_bytecode = config["isolated"] and not config["warm"]
    importlib.import_module("tpucc.guest.serving").serve(config, requests, answers)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return requests, answers


def _end_all(user: int) -> None:
    """Ends every process of a user."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.kill(-1, signal.SIGKILL)


if __name__ == "__main__":
    main()
