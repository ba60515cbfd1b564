"""What the user's code finds around it, and what is put back after a call of it: the names of Python's own modules and of NumPy, the depth
to which calls nest, and the memory of the machine.

Calls may stand inside each other, and in several threads: the first to begin notes what there is, and the last to end gives it back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from operator import is_
from types import ModuleType
from typing import Any

from tpucc import plugins
from tpucc.values import dataclass

try:
    import resource
except ImportError:  # as on Windows and in WebAssembly
    resource = None  # type: ignore[assignment]

_ENDING = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end the process without a word; all that are like them call these."""
_TO_SET = {"path", "stdout"}
"""Names of `sys` that aren't put back: the user's code may set the first, and what redirects the output sets the second."""
_STREAMS = {"stdout": 1, "stderr": 2}
_SHARE = 0.9
"""How much of the free memory the user's code may take."""

Names = dict[str, Any]


class Ending(SystemExit):
    """Raised in the place of a call that would end the process; its argument is the name of what was called."""


@dataclass(frozen=True)
class _Found:
    """What there was: for each namespace its names outside of a call and in one; the modules, the limit of nested calls, and the limit of
    memory that was there before, None where none was set."""

    names: tuple[tuple[Names, Names, Names], ...]
    modules: dict[str, ModuleType]
    depth: int
    memory: tuple[int, int] | None


_all, _map = all, map
_lock = threading.Lock()
_callers: list[int] = []
"""The threads in which calls are under way."""
_own: set[int] = set()
"""The threads that were there before the first call, such as a debugger's. Others may be the user's."""
_found: _Found | None = None


def have_called() -> bool:
    """Whether code of the user's has run: what it has left for the end of the process is not to run."""
    return bool(_own)


def begin() -> None:
    """Notes what there is, until `end`. From here on, calls that would end the process raise `Ending`, in this thread and in those that
    the user's code starts. On Linux the process can take most of the memory that is free now, and is then refused more: else the system
    would end it, or another process."""
    global _found
    with _lock:
        if not _own:
            _own.update(sys._current_frames())
        if not _callers:
            _found = _Found(tuple(_spaces()), dict(sys.modules), sys.getrecursionlimit(), _limited())
            for space, _, inside in _found.names:
                space.update(inside)
        _callers.append(threading.get_ident())


def put_back() -> None:
    """Puts the names back, as they are in a call. It uses nothing of `builtins`, which may be what was changed."""
    assert _found is not None
    for space, _, inside in _found.names:
        if not _all(_map(is_, _map(space.get, inside), inside.values())):
            for name in inside:
                space[name] = inside[name]
    modules = sys.modules
    for name in _found.modules:
        if name not in modules:  # Python's own imports, as for a message, would make half of them anew
            modules[name] = _found.modules[name]


def end() -> None:
    """The call is over."""
    global _found
    put_back()
    assert _found is not None
    with _lock:
        _callers.remove(threading.get_ident())
        if _callers:
            return
        found, _found = _found, None
        for space, outside, inside in found.names:
            space.update(outside)
            if plugins.last_resort is not None:  # in the command, threads of the user's that outlive the call don't end it
                space.update({name: inside[name] for name in _ENDING if name in inside})
        _open_again()
        if sys.getrecursionlimit() < found.depth:
            sys.setrecursionlimit(found.depth)
        if found.memory is not None:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_AS, found.memory)


def _open_again() -> None:
    """Streams that are closed: results and messages are still to come."""
    for name, descriptor in _STREAMS.items():
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and stream.closed:
            with suppress(OSError):
                again = open(descriptor, "w", encoding=stream.encoding, errors=stream.errors, closefd=False)  # noqa: SIM115
                setattr(sys, name, again)


def _spaces() -> Iterator[tuple[Names, Names, Names]]:
    for module in ("builtins", "os", "posix", "nt", "posixpath", "ntpath", "numpy"):
        if module in sys.modules:
            outside = dict(space := vars(sys.modules[module]))
            yield space, outside, outside | {name: _ending(name, outside[name]) for name in _ENDING if name in outside}
    yield vars(sys), (own := {name: value for name, value in vars(sys).items() if name not in _TO_SET}), own


def _ending(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """In the place of a function that ends the process: of this one, also where a copy of it found that of the command in place."""
    return _Ends(name, function.function if isinstance(function, _Ends) else function, os.getpid())


@dataclass(frozen=True)
class _Ends:
    """A function of `os` that ends the process; in a copy of the process and in the thread of a debugger it still does. In a thread of the
    user's it ends the thread."""

    name: str
    function: Callable[..., object]
    process: int

    def __call__(self, *given: object, **named: object) -> object:
        thread = threading.get_ident()
        if os.getpid() == self.process and thread in _callers:
            raise Ending(f"os.{self.name}")
        if os.getpid() == self.process and thread not in _own:
            raise SystemExit(f"os.{self.name}")
        return self.function(*given, **named)


def _limited() -> tuple[int, int] | None:
    """Sets the limit of memory; returns what it was before, or None where there is none to set."""
    free = _free()
    if resource is None or free is None:
        return None
    used, available = free
    before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + int(_SHARE * available)
    if soft != resource.RLIM_INFINITY and soft <= most:
        return None
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    return before


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
