"""What the user's code finds around it, and what is put back after a call of it: the names of Python's own modules and of NumPy, the depth
to which calls nest, and what `process` says.

Calls may stand inside each other, and in several threads: the first to begin notes what there is, and the last to end gives it back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tpucc import plugins
from tpucc.plugins import process
from tpucc.plugins.process import Process

_ENDING = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end the process without a word; all that are like them call these."""
_PUT_BACK = ("builtins", "os", "posix", "nt", "posixpath", "ntpath", "threading", "numpy")
_TO_SET = {"path", "stdout"}
"""Names of `sys` that aren't put back: the user's code may set the first, and what redirects the output sets the second."""
_STREAMS = {"stdout": 1, "stderr": 2}
_LEVEL = 5600
"""Bytes of the stack that a nested call takes at most, as one of `sorted` that calls a method. CPython 3.12 and later count these."""
_OURS = ("tpucc", "pathlib")
"""Packages of whose classes `changed` looks at the methods, too."""

Names = dict[str, Any]


class Ending(SystemExit):
    """Raised in the place of a call that would end the process; its argument is the name of what was called."""


@dataclass(frozen=True)
class _Found:
    """What there was: for each namespace its names outside of a call and in one; the modules, the limit of nested calls, the process."""

    names: tuple[tuple[Names, Names, Names], ...]
    modules: dict[str, ModuleType]
    depth: int
    process: Process


_DEFINED = {FunctionType, BuiltinFunctionType, type, property, staticmethod, classmethod}
_ABSENT = object()
"""In the place of a name that isn't there."""
_all, _map = all, map
_lock = threading.Lock()
_callers: list[int] = []
"""The threads in which calls are under way."""
_own: set[int] = set()
"""The threads that were there before the first call, such as a debugger's. Others may be the user's."""
_found: _Found | None = None
_before: list[tuple[str, Any, Names]] = []
"""Before the first call: the name of each module and class, itself, and its functions and classes."""


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
            if plugins.last_resort is not None:
                _before.extend(_definitions())
        if not _callers:
            noted = process.note()
            spaces = tuple(_spaces(max(sys.getrecursionlimit(), process.deepen() // _LEVEL)))
            _found = _Found(spaces, dict(sys.modules), sys.getrecursionlimit(), noted)
            process.limit_memory()
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
    process.put_back(_found.process)


def changed() -> dict[str, str]:
    """What code of the user's has set in other modules and classes than those that are put back after each call, where tpucc is a command:
    the name of each, and the file of its new value where that is a function. All of it is put back: a message is to be made yet."""
    found = {}
    for owner, space, names in _before:
        for name, value in names.items():
            now = vars(space).get(name, _ABSENT)
            if now is not value:
                found[f"{owner}.{name}"] = _file_of(now)
                if value is _ABSENT:
                    delattr(space, name)
                else:
                    setattr(space, name, value)
    return found


def refuses_files() -> str:
    """What an audit hook raises where a file is opened; nothing where none does."""
    try:
        sys.audit("open", os.devnull, "r", os.O_RDONLY)
    except Exception as error:
        return type(error).__name__
    return ""


def _file_of(value: object) -> str:
    """Where a function, or that of a property or a method, is written; nothing for other values."""
    function = value.fget if type(value) is property else value.__func__ if type(value) in (staticmethod, classmethod) else value  # type: ignore[attr-defined]
    return function.__code__.co_filename if type(function) is FunctionType else ""


def _definitions() -> Iterator[tuple[str, Any, Names]]:
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module_name in (__name__, "sys", *_PUT_BACK):
            continue
        own = {name: value for name, value in vars(module).items() if type(value) in _DEFINED}
        yield module_name, module, own
        for name, value in own.items():
            if type(value) is type and value.__module__ == module_name and module_name.partition(".")[0] in _OURS:
                yield f"{module_name}.{name}", value, _methods(value)


def _methods(cls: type) -> Names:
    """Its functions, and those that it has from others and may have of its own."""
    return {
        name: vars(cls).get(name, _ABSENT)
        for owner in reversed(cls.__mro__)
        for name, value in vars(owner).items()
        if type(value) in _DEFINED and (name not in vars(cls) or owner is cls)
    }


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
        process.give_back(found.process)


def _open_again() -> None:
    """Streams that are closed: results and messages are still to come."""
    for name, descriptor in _STREAMS.items():
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and stream.closed:
            with suppress(OSError):
                again = open(descriptor, "w", encoding=stream.encoding, errors=stream.errors, closefd=False)  # noqa: SIM115
                setattr(sys, name, again)


def _spaces(depth: int) -> Iterator[tuple[Names, Names, Names]]:
    for module in _PUT_BACK:
        if module in sys.modules:
            outside = dict(space := vars(sys.modules[module]))
            yield space, outside, outside | {name: _ending(name, outside[name]) for name in _ENDING if name in outside}
    own = {name: value for name, value in vars(sys).items() if name not in _TO_SET}
    set_depth = own["setrecursionlimit"]
    counted = sys.version_info >= (3, 12)
    yield vars(sys), own, own if counted else own | {"setrecursionlimit": lambda limit: set_depth(min(limit, depth))}


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
