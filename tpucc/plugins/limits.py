"""A limit of seconds for code that may never end, and interrupts from the keyboard while it runs.

In the main thread of a POSIX system a timer's signal raises an exception in the code; elsewhere a watching thread has it raised. Both
act between two steps of the Python interpreter: a single long call into C ends first.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 0.05
"""Seconds until the next try, where the code swallowed the exception: one of the tries hits a place that no handler covers."""


class TimeIsUp(BaseException):
    """Raised in the code whose time is up. No `except Exception` catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `TimeIsUp` in the body when it takes longer than `seconds`."""
    by_signal = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if by_signal else _watchdog(seconds):
        yield


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


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    waits = True

    def ring(number: int, frame: FrameType | None) -> None:
        if waits:
            raise TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        try:
            waits = False  # it may ring just now
        finally:
            signal.setitimer(signal.ITIMER_REAL, left, interval)
            signal.signal(signal.SIGALRM, before)


@contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    done, thread = threading.Event(), threading.get_ident()

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeIsUp))
            pause = AGAIN

    watching = threading.Thread(target=watch, name="watchdog", daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)  # one that was asked for too late
