"""Calls code that the user brought, a pass or a stage: the outcome is its result, or a `PluginError` that names it, its file and its line.

The code runs in this process, as an object of the user's own does. Passes and stages of files run in a child process (`tpucc.guest`); what
fails there arrives as a `Failed`, and becomes the same error.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from tpucc.diagnostics import Diagnostic, Label, PluginError, Source, Span
from tpucc.plugins.depth import shallow
from tpucc.plugins.failures import Failed, failed, unplaced

P = ParamSpec("P")
R = TypeVar("R")

CODES = {
    "time": ("E0522", ("does one of its loops never end? --plugin-timeout gives it more seconds",)),
    "memory": ("E0613", ("smaller tensors need less",)),
}
"""The code of a failure that is no exception, and what to do about it."""
SAYS_ALL = ("time", "memory", "ended")
"""Kinds of failures whose message says what happened, after the name of the code."""


@dataclass(frozen=True)
class UserCode:
    """A piece of the user's code: what it is in words (`the pass double`), and where it is written."""

    what: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """Its file, and its line in a file that is read by lines."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.line else os.path.basename(self.file)

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of `function`. Raises `PluginError`: E0521 where it raises or exits, E0613 without memory, and what `Unfit` and
        `Failed` say. An interrupt from the keyboard passes through. What the code prints goes to standard error, away from results."""
        linecache.getlines(self.file)  # a message shows one, and the code may leave no file that can be opened
        try:
            with shallow(), redirect_stdout(sys.stderr):
                return function(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self.of(failed(error, self.file.__eq__)) from error

    def of(self, failure: Failed) -> PluginError:
        """The error of a failure, at the line of this file where the code was last. An exception's lines are one in the message."""
        place = next((frame for frame in reversed(failure.frames) if os.path.basename(frame.file) == os.path.basename(self.file)), None)
        line, column = (place.line, place.column) if place else (0, 0)
        code, help = CODES.get(failure.kind, ("E0521", ()))
        if failure.kind == "result":
            return self.error(failure.code, failure.message, *failure.help, line=line, more=failure.found)
        if failure.found:
            return self.error(code, f"raised {failure.kind}", line=line, more=failure.found)
        words = failure.message if failure.kind in SAYS_ALL else f"raised {failure.raised}"
        return self.error(code, " ".join(map(str.strip, words.splitlines())), *help, line=line, column=column)

    def error(self, code: str, message: str, *help: str, line: int = 0, column: int = 0, more: tuple[Diagnostic, ...] = ()) -> PluginError:
        """`message` continues what this is; it stands at `line` of its file, or at its own, from `column` or from its first word on. `more`
        are diagnostics that say the rest."""
        source, line = Source(os.path.basename(self.file), "".join(linecache.getlines(self.file))), line or self.line
        text = source.line(line)
        start = column if 0 < column <= len(text) else len(text) - len(text.lstrip()) + 1
        labels = (Label(Span(line, start, line, len(text) + 1)),) if text.strip() else ()
        return PluginError((Diagnostic(code, f"{self.what} {message}", labels, help), *map(unplaced, more)), source)


@dataclass(frozen=True)
class FileFunction:
    """A function of one of the user's files, at a line there, or a program, which has no line: called, it asks the process that has it."""

    ask: Callable[..., Any]
    file: str
    line: int

    def __call__(self, *arguments: Any) -> Any:
        return self.ask(*arguments)


def user_code(what: str, code: object) -> UserCode:
    """A function of the user's, or an object that can be called; one that isn't written in Python has no place."""
    return UserCode(what, *place_of(code))


def place_of(code: object) -> tuple[str, int]:
    """The file and the line where a function is written, or a class or an object that can be called; `("", 0)` where that isn't Python."""
    if type(code) is FileFunction:
        return code.file, code.line
    compiled = _compiled(code)
    return (compiled.co_filename, compiled.co_firstlineno) if compiled else ("", 0)


def _compiled(code: object) -> CodeType | None:
    """Where a function is written, read without running any code of the user's, such as a property."""
    while issubclass(type(code), partial | MethodType):
        code = code.func if isinstance(code, partial) else code.__func__  # type: ignore[attr-defined]
    if type(code) is FunctionType:
        return code.__code__
    looked_in, name = (code, "__init__") if issubclass(type(code), type) else (type(code), "__call__")
    found = next((vars(cls)[name] for cls in type.mro(looked_in) if name in vars(cls)), None)  # type: ignore[arg-type]
    return found.__code__ if type(found) is FunctionType else None


def short(value: object) -> str:
    """A value that the user's code returned, in a few words: its own text may fail, too."""
    try:
        return short_text(str.__str__(repr(value)))
    except Exception as error:
        return f"a {type(value).__name__} whose text raises {type(error).__name__}"


def short_text(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= 60 else f"{text[:60]}…"
