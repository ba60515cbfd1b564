"""Standard output and standard error whose reader is gone, or whose disk is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def unread() -> Iterator[None]:
    """Here messages are written to standard error: if nobody can read them they are lost, and the command and its status are the same."""
    try:
        yield
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Loses what can't be written to a stream, now and later: Python writes the rest again at its end."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
