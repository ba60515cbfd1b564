"""Python files of the user's own: each is executed in this process's child, which all files share, or here for whoever trusts it.

One child serves a whole command, so that a file keeps its module's state, and a start is paid once: half a second. Where a call has
no result, the child is ended: the next call starts another one, which executes the file anew.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.files import read_file
from tpucc.guest.child import Child
from tpucc.guest.jails import NOWHERE, OWN, Cell, Jail
from tpucc.guest.limits import Duration
from tpucc.guest.serving import Request, module_of
from tpucc.guest.values import Plain
from tpucc.plugins.code import UserCode

START = 60.0
"""Seconds in which a child must be there: it imports NumPy and tpucc on a machine that may be busy."""
BY_THE_CLOCK = 5
"""A limit of processor time, as often by the clock: a busy machine lets everybody wait."""
LONGEST = 1e6
"""Seconds of a call: the timers of the system don't count to every number."""
ANSWERS = ("TooLarge",)
"""Exceptions that are answers."""
INSIDE = "tpucc.guest.inside"
IN_A_PAGE = sys.platform == "emscripten"
"""Whether no process can be started, as in WebAssembly. A page ends its worker instead."""
_numbers = count(1)


def duration_of(seconds: float) -> Duration:
    """How long a call may take that has so many seconds of processor time: a call that only waits, as for another program, has as many by
    the clock."""
    most = min(seconds, LONGEST)
    return Duration(most, BY_THE_CLOCK * most, most)


@dataclass(eq=False)
class OneChild:
    """A child that is there from the first question on, for one thread after the other."""

    jail: Jail
    cell: Cell
    _child: Child | None = None
    _loaded: set[str] = field(default_factory=set)
    _lock: RLock = field(default_factory=RLock)

    def ask(self, file: File, request: Request) -> Plain:
        """The value of an answer of a file, which is loaded first where it isn't. Raises `Failed`."""
        with self._lock:
            child = self._started()
            if file.key not in self._loaded:
                self._answered(child, file.loading(self.jail, self.cell))
                self._loaded.add(file.key)
            return self._answered(child, request) if request.function else None

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            if self._child is not None:
                self._child.close()
            self._child, self._loaded = None, set()

    def forget(self) -> None:
        """In a copy of this process: its parent's child isn't its own."""
        if self._child is not None:
            _forgotten.append(self._child)
        self._child, self._loaded, self._lock = None, set(), RLock()

    def _started(self) -> Child:
        if self._child is None or not self._child.is_there:
            self.close()
            self._child = Child(self.jail, self.cell, (INSIDE,), told=_tell)
            self._answered(self._child, Request("", f"{INSIDE}:ready", (), Duration(START, START, START)))
        return self._child

    def _answered(self, child: Child, request: Request) -> Plain:
        try:
            answer = child.ask(request)
        except BaseException:  # an interrupt: what the child answers to this would be the next answer
            self.close()
            raise
        if answer.failure is None:
            return answer.value
        if answer.failure.kind not in ANSWERS:
            self.close()
        raise answer.failure


def _tell(text: str) -> None:
    """What code of the user's prints is no result: it goes to standard error."""
    with suppress(OSError, ValueError):  # nobody reads it
        sys.stderr.write(text)
        sys.stderr.flush()


CHILD = OneChild(OWN, NOWHERE)
"""The child of this process."""
_forgotten: list[Child] = []
atexit.register(CHILD.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHILD.forget)


@dataclass(frozen=True, eq=False)
class File:
    """A Python file that is loaded in a child. `surroundings` are the current folder, Python's path and the command's arguments when it was
    named; one call may take `most`."""

    path: Path
    most: Duration
    surroundings: tuple[Any, ...]
    key: str

    @property
    def place(self) -> str:
        return str(self.path.absolute())

    @property
    def code(self) -> UserCode:
        """The file, for messages."""
        return UserCode(f"the file {self.path}", self.place, 0)

    def code_at(self, what: str, place: str, line: int) -> UserCode:
        """A piece of code at a place that the child says. Of this file, it sees another path where it is in a jail."""
        return UserCode(what, self.place if os.path.basename(place) == self.path.name else place, line)

    def call(self, function: str, *arguments: Any) -> Plain:
        """What a function gives. Raises `Failed`."""
        return CHILD.ask(self, Request(self.key, function, arguments, self.most))

    def functions(self) -> Mapping[str, UserCode]:
        """What can be called, by its name. Raises `PluginError` when the file fails."""
        found: Mapping[str, tuple[str, int]] = self.code.call(self.call, f"{INSIDE}:functions")
        return {name: self.code_at(name, *place) for name, place in found.items()}

    def loading(self, jail: Jail, cell: Cell) -> Request:
        """The request that loads the file."""
        place = self.place if jail is OWN else jail.place(cell)
        return Request(self.key, "", self.surroundings if jail is OWN else (), self.most, place)


def file_at(path: Path, seconds: float) -> File:
    """A Python file, which isn't loaded yet. Raises `UsageError` when it can't be read or is no Python file."""
    _require_python(path)
    given = os.getcwd(), [os.path.abspath(folder) for folder in sys.path], list(sys.argv)
    return File(path, duration_of(seconds), given, f"tpucc_plugin_{path.stem}_{next(_numbers)}")


def executed(path: Path) -> ModuleType:
    """The module that a Python file makes, in this process. It may import what lies beside it.

    Raises `UsageError` when it can't be read or is no Python file, `PluginError` when it fails.
    """
    _require_python(path)
    place = str(path.absolute())
    return UserCode(f"the file {path}", place, 0).call(module_of, place, f"tpucc_plugin_{path.stem}")


def _require_python(path: Path) -> None:
    read_file(path)
    if path.suffix != ".py":
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file; a file with passes or stages ends in .py"))
