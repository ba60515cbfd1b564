"""What the user's code finds of the process, and what is put back after a call of it: the current folder, the mode of new files, limits of
the system, alarms, tracing, and the descriptors of the standard streams. While a call lasts, the stack may grow, and memory is limited.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

try:
    import resource
except ImportError:  # as on Windows and in WebAssembly
    resource = None  # type: ignore[assignment]
try:
    import fcntl
except ImportError:  # as on Windows
    fcntl = None  # type: ignore[assignment]

_SHARE = 0.9
"""How much of the free memory the user's code may take."""
_STACK = 2**26
"""Bytes that the main thread's stack may have while the user's code runs, where the system lets it grow so far: Linux leaves 128 MB."""
_STREAMS = (0, 1, 2)
_FIRST = 200
"""The descriptors of copies begin here: code that closes those that it finds closes the first ones."""


@dataclass(frozen=True)
class _Copy:
    """A copy of a standard stream's descriptor, and the device and the number of the file that it is of."""

    stream: int
    descriptor: int
    file: tuple[int, int]


@dataclass(frozen=True)
class Process:
    """What there was: the current folder, the mode of new files, the limits of the system by kind, whether an alarm was set, the functions
    that trace and profile, and copies of the standard streams."""

    folder: str | None
    mode: int
    limits: dict[int, tuple[int, int]]
    alarm: bool
    tracing: tuple[Any, Any]
    copies: tuple[_Copy, ...]


def note() -> Process:
    """What there is now, for `put_back` and, once, `give_back`."""
    mode = os.umask(0o22)
    os.umask(mode)
    alarm = hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL)[0] > 0
    copies = tuple(copy for stream in _STREAMS if (copy := _copied(stream)) is not None)
    return Process(_folder(), mode, _limits(), alarm, (sys.gettrace(), sys.getprofile()), copies)


def put_back(found: Process) -> None:
    """All of it, save the limits of memory and of the stack, which hold until the end of the call."""
    if (sys.gettrace(), sys.getprofile()) != found.tracing:
        sys.settrace(found.tracing[0])
        sys.setprofile(found.tracing[1])
    if found.folder is not None and _folder() != found.folder:
        with suppress(OSError):
            os.chdir(found.folder)
    os.umask(found.mode)
    for kind, limit in found.limits.items():
        if kind not in (resource.RLIMIT_AS, resource.RLIMIT_STACK):
            _set_limit(kind, limit)
    if not found.alarm and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    for copy in found.copies:
        if _file(copy.stream) != copy.file and _file(copy.descriptor) == copy.file:
            with suppress(OSError):
                os.dup2(copy.descriptor, copy.stream)


def give_back(found: Process) -> None:
    """After the last call: its limits of memory and of the stack, and the copies, are over."""
    for kind, limit in found.limits.items():
        _set_limit(kind, limit)
    for copy in found.copies:
        if _file(copy.descriptor) == copy.file:
            with suppress(OSError):
                os.close(copy.descriptor)


def _limits() -> dict[int, tuple[int, int]]:
    if resource is None:
        return {}
    return {kind: resource.getrlimit(kind) for name in dir(resource) if name.startswith("RLIMIT_") for kind in (getattr(resource, name),)}


def _set_limit(kind: int, limit: tuple[int, int]) -> None:
    """Sets a limit of the system, or as much of it as may be: a hard one can't be raised again, save by root."""
    if resource.getrlimit(kind) == limit:
        return
    try:
        resource.setrlimit(kind, limit)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (hard, hard))


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _copied(stream: int) -> _Copy | None:
    if fcntl is None or (file := _file(stream)) is None:
        return None
    try:
        return _Copy(stream, fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, _FIRST), file)
    except (OSError, AttributeError):  # no descriptor is left; WebAssembly has no such call
        return None


def _file(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def deepen() -> int:
    """Lets the stack grow, on Linux in the main thread; returns its bytes. Before CPython 3.12 nested calls that it has no room for end the
    process: no limit of theirs may be set above."""
    if resource is None or threading.current_thread() is not threading.main_thread():
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
    if sys.platform == "linux" and soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_STACK, (most, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return most if soft == resource.RLIM_INFINITY else soft


def limit_memory() -> None:
    """Sets the limit of memory, where there is one to set."""
    free = _free()
    if resource is None or free is None:
        return
    used, available = free
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + int(_SHARE * available)
    if soft != resource.RLIM_INFINITY and soft <= most:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _free() -> tuple[int, int] | None:
    """Bytes of addresses that the process has, and of memory that is free, where Linux says so."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as stream:
            pages = int(stream.read().split()[0])
        with open("/proc/meminfo", "rb", buffering=0) as stream:
            available = next(int(line.split()[1]) for line in stream.read().splitlines() if line.startswith(b"MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE"), available * 1024
