"""A limit of seconds for code that may never end, and interrupts from the keyboard while it runs.

A thread waits beside the code. When time is up, it has an exception raised there, again and again until the code has ended: by a signal in
the main thread, which also ends a `sleep`, elsewhere by Python itself. The signal is SIGURG, which nothing uses and which does no harm when
its handler has been taken away. Both act between two steps of the Python interpreter. In a single long call into C neither does: then
`stuck` is called.

A call into C may also keep the interpreter's lock, and then no thread that is written in Python runs. `faulthandler` has a thread in C: it
writes where the code is and ends the process with status 1.
"""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.05
"""Seconds until the next try, where the code swallowed the exception: one of the tries hits a place that no handler covers."""

TICK = 0.25
"""Seconds between two looks of the watchdog. Each has Python look for signals, too: one that comes while threads change may be overlooked
by CPython 3.11 until then."""

GRACE = 1.0
"""Seconds from the first try until `stuck` is called."""
LONGEST = 1e7
"""Seconds, four months: the system's clocks don't count to every number."""
STANDARD_ERROR = 2
THREADS = sys.platform != "emscripten"
"""Whether a thread can be started."""


class TimeIsUp(BaseException):
    """Raised in the code whose time is up. No `except Exception` catches it."""


class _Settled(BaseException):
    """Raised in the place of a `TimeIsUp` that comes too late."""


@contextmanager
def limited(seconds: float, stuck: Callable[[FrameType | None], object] | None = None) -> Iterator[None]:
    """Raises `TimeIsUp` in the body when it takes longer than `seconds`. When that doesn't end the body, `stuck` is called with its frame;
    it ends the process. Without threads, as in WebAssembly, there is no limit: who runs Python there can end it from outside."""
    if not THREADS:
        yield
        return
    seconds = min(seconds, LONGEST)
    watchdog = _Watchdog(seconds, stuck)
    try:
        try:
            watchdog.start()
            yield
        finally:
            watchdog.over = True  # no signal comes between: Python looks for them at calls and at the ends of loops
            watchdog.end()
    except TimeIsUp:
        watchdog.end()  # again, where the first was left half-way: Python's own exception may have been on its way
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """An interrupt from the keyboard ends the body with `KeyboardInterrupt`, whatever the body makes of it; one that the body raises
    itself is an exception of its own."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        before(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            raise KeyboardInterrupt from None


class _Watchdog:
    """Interrupts the thread that made it, once `seconds` are over, until it is `over`."""

    def __init__(self, seconds: float, stuck: Callable[[FrameType | None], object] | None) -> None:
        self.over = False
        self._seconds = seconds
        self._stuck = stuck
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._done = threading.Event()
        by_signal = hasattr(signal, "SIGURG") and threading.current_thread() is threading.main_thread()
        self._before = signal.getsignal(signal.SIGURG) if by_signal else None
        self._asked = False
        self._unraisable = sys.unraisablehook

    def start(self) -> None:
        sys.unraisablehook = self._swallowed
        if self._before is not None:
            signal.signal(signal.SIGURG, self._ring)
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()
        if self._stuck is not None:
            faulthandler.dump_traceback_later(self._seconds + 2 * GRACE, exit=True, file=STANDARD_ERROR)

    def end(self) -> None:
        """After this nothing is interrupted, nor by what was asked for too late."""
        if self._stuck is not None:
            faulthandler.cancel_dump_traceback_later()
        with self._lock:  # what is being asked for has been asked for
            self._done.set()
        if self._asked:
            self._settle()
        if self._before is not None:
            signal.signal(signal.SIGURG, self._before)
        sys.unraisablehook = self._unraisable

    def _watch(self) -> None:
        pause, due = TICK, time.monotonic() + self._seconds
        last = due + GRACE
        while not self._done.wait(min(pause, max(0.0, due - time.monotonic()) or pause)):
            if time.monotonic() < due:
                continue
            with self._lock:
                if self.over:
                    return
                if self._stuck is not None and time.monotonic() > last:
                    self._stuck(sys._current_frames().get(self._thread))
                self._interrupt()
            pause = AGAIN

    def _interrupt(self) -> None:
        if self._before is not None and signal.getsignal(signal.SIGURG) == self._ring:
            signal.pthread_kill(self._thread, signal.SIGURG)
        else:
            self._asked = True
            self._raise(TimeIsUp)

    def _raise(self, kind: type[BaseException]) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(kind))

    def _settle(self) -> None:
        """Takes the exception that was asked for last, which may be on its way. To take it back would leave Python looking for it at every
        step from then on; in CPython 3.11 a function that is traced, as by a debugger, then never begins."""
        self._asked = False
        try:
            self._raise(_Settled)
            while True:
                pass
        except _Settled:
            pass

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self.over:
            raise TimeIsUp

    def _swallowed(self, raised: sys.UnraisableHookArgs) -> None:
        """Where Python swallows exceptions, as in a finaliser, it tells of each at once. Ours comes again, and is told by who gets it."""
        if not isinstance(raised.exc_value, TimeIsUp):
            self._unraisable(raised)
