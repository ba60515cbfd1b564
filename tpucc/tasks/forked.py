"""A process of this machine that begins as a copy of this one: what is imported here is there at once."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from contextlib import suppress
from typing import NoReturn, Self

from tpucc.tasks.worker import serve


def can_fork() -> bool:
    """Whether a copy of this process is sound: with another thread it could wait for what that thread holds. Elsewhere than on Linux the
    system's own libraries may not be copied."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """The process, as `subprocess.Popen` would have it, with its two streams."""

    def __init__(self) -> None:
        requests, given = os.pipe()
        found, answers = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()  # or else both would write what waits there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that numpy may have
            self.pid = os.fork()
        if not self.pid:
            _work(requests, answers)
        os.close(requests)
        os.close(answers)
        self.stdin, self.stdout = os.fdopen(given, "wb"), os.fdopen(found, "rb")
        self._status: int | None = None
        self._waiting = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The end of its input ends it."""
        for stream in (self.stdin, self.stdout):
            with suppress(BrokenPipeError):
                stream.close()
        self.wait()

    def kill(self) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit status; of a signal that ended it, the negative number."""
        with self._waiting:
            if self._status is None:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self._status


def _work(requests: int, answers: int) -> NoReturn:
    """What the copy does, and nothing else: whatever else this process has open is closed in it, such as the lock of a journal."""
    status = 1
    try:
        first, second = sorted((requests, answers))
        for start, end in ((3, first), (first + 1, second), (second + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(start, end)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        gc.freeze()
        serve(os.fdopen(requests, "rb"), answers)
        status = 0
    except BaseException:
        with suppress(BaseException):
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
    finally:
        os._exit(status)
