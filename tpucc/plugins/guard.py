"""Calls code that the user brought: the outcome is its result, or a `PluginError` that names it.

The code may raise anything, exit the interpreter, take all memory, or never end. An interrupt from the keyboard isn't caught: it ends tpucc
as usual. The result may run the user's code too, until it has become a plain value: reading it, even its type or its text, belongs inside
the call. What it changes in Python's own modules is put back as far as `surroundings` says; a crash in C, and changes to other modules,
can't be caught in the same process: run code that may be harmful in a child process.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from types import CodeType, FrameType, FunctionType, MethodType
from typing import ParamSpec, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

from tpucc import plugins
from tpucc.diagnostics import Diagnostic, Error, Label, PluginError, Source, Span
from tpucc.plugins import surroundings
from tpucc.plugins.depth import shallow
from tpucc.plugins.limits import TimeIsUp, interruptible, limited
from tpucc.plugins.printed import KEPT, shortened
from tpucc.plugins.surroundings import Ending

P = ParamSpec("P")
R = TypeVar("R")

_made = WeakKeyDictionary[PluginError, tuple[tuple[Diagnostic, ...], Source | None]]()
"""The errors that `Guest.error` has made, and what they say. The user's code may raise others, without a place, and change these."""

SECONDS = 60.0
"""How long one call may take, unless `--plugin-timeout` says otherwise."""


@dataclass(frozen=True)
class Guest:
    """A piece of the user's code: what it is in words (`the pass double`), where it is written, and the seconds that a call may take."""

    what: str
    file: str
    line: int
    seconds: float = SECONDS

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of `function`. Raises `PluginError` E0521 when it raises or exits, E0522 when it takes too long, E0613 without memory.
        A `TooLarge` is an answer, and passes through. Its output goes to standard error, away from results."""
        linecache.getlines(self.file)  # a message shows one, and the code may leave no file that can be opened
        surroundings.begin()
        try:
            return self._called(function, *args, **kwargs)
        finally:
            surroundings.end()

    def _called(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        stuck = None if plugins.last_resort is None else self._end
        process = os.getpid()
        try:
            with interruptible(), limited(self.seconds, stuck), shallow(), redirect_stdout(sys.stderr):
                try:
                    try:
                        result = function(*args, **kwargs)
                    finally:
                        surroundings.put_back()
                    if kind := surroundings.refuses_files():
                        raise self._hooked(kind)
                    return result
                except (TimeIsUp, MemoryError):
                    raise
                except BaseException as error:
                    if type(error) is PluginError and error in _made:
                        error.diagnostics, error.source = _made[error]
                        raise
                    failure = self._raised(error)
                finally:
                    if os.getpid() != process:
                        plugins.leave(1)  # it has forked: what comes after the call is for one process only
        except TimeIsUp as late:
            raise self._late(self._line(late)) from None
        except MemoryError as full:
            line = self._line(full)
            full.__traceback__ = None  # what it has made is free now
            raise self.error("E0613", "takes more memory than there is", "smaller tensors need less", line=line) from None
        raise failure

    def error(self, code: str, message: str, *help: str, line: int = 0, column: int = 0, more: tuple[Diagnostic, ...] = ()) -> PluginError:
        """`message` continues what this is; it stands at `line` of its file, or at its own, from `column` or from its first word on. `more`
        are diagnostics that say the rest."""
        source, line = Source(os.path.basename(self.file), "".join(self._lines())), line or self.line
        text = source.line(line)
        start = column if 0 < column <= len(text) else len(text) - len(text.lstrip()) + 1
        labels = (Label(Span(line, start, line, len(text) + 1)),) if text.strip() else ()
        head = Diagnostic(code, f"{self.what} {message}", labels, help)
        error = PluginError((head, *map(_unplaced, more)), source)
        _made[error] = error.diagnostics, error.source
        return error

    def _lines(self) -> list[str]:
        """Those of the file, as they are now; where it can't be read any more, as they were at the call."""
        kept = linecache.getlines(self.file)
        linecache.checkcache(self.file)
        try:
            return linecache.getlines(self.file) or kept
        except Exception:
            return kept

    def _late(self, line: int) -> PluginError:
        help = "does one of its loops never end? --plugin-timeout gives it more seconds"
        return self.error("E0522", f"takes longer than {self.seconds:g} s", help, line=line)

    def _hooked(self, kind: str) -> PluginError:
        help = "an audit hook can't be removed; let yours pass what it isn't for"
        return self.error("E0524", f"has added an audit hook, which raises {kind} where tpucc opens a file", help)

    def _end(self, frame: FrameType | None) -> None:
        """Ends the process: the code is in a call into C, which it made from `frame`."""
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        assert plugins.last_resort is not None
        plugins.last_resort(self._late(frame.f_lineno if frame is not None else 0))

    def _raised(self, error: BaseException) -> PluginError:
        """E0521 at the line of this file where the exception passed last. An error of tpucc's own brings its words."""
        try:
            failure = self._described(error)
        except (TimeIsUp, MemoryError):
            raise
        except BaseException:
            return self.error("E0521", "raised an exception that can't be read")
        failure.__cause__ = error
        return failure

    def _described(self, error: BaseException) -> PluginError:
        name, line = type(error).__name__, self._line(error)
        column = error.offset if self._unread(error) and type(error.offset) is int else 0
        if isinstance(error, Ending):
            return self.error("E0521", f"calls {error}, which would end tpucc", "return a result, or raise an exception", line=line)
        if isinstance(error, SystemExit):
            return self.error("E0521", "raised SystemExit, which would end tpucc", "return a result, or raise an exception", line=line)
        more = tuple(d for d in getattr(error, "diagnostics", ()) if type(d) is Diagnostic) if isinstance(error, Error) else ()
        text = "" if more else error.msg if self._unread(error) and type(error.msg) is str else _text(error)
        return self.error("E0521", f"raised {name}: {text}" if text else f"raised {name}", line=line, column=column, more=more)

    def _unread(self, error: BaseException) -> TypeGuard[SyntaxError]:
        """Whether Python can't read this file: the text of such an exception ends in its place, which the message has already."""
        return isinstance(error, SyntaxError) and error.filename == self.file and type(error.lineno) is int

    def _line(self, error: BaseException) -> int:
        if self._unread(error) and error.lineno is not None:
            return error.lineno
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        return next((line for file, line in reversed(frames) if file == self.file), 0)


def guest(what: str, code: object, seconds: float = SECONDS) -> Guest:
    """A function of the user's, or an object that can be called; one that isn't written in Python has no place."""
    compiled = _compiled(code)
    return Guest(what, compiled.co_filename, compiled.co_firstlineno, seconds) if compiled else Guest(what, "", 0, seconds)


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
    """A value that the user's code returned, in a few words: its own text may fail, too. To be called inside `Guest.call`."""
    try:
        text = str.__str__(repr(value))
    except TimeIsUp:
        raise
    except BaseException as error:
        return f"a {type(value).__name__} whose text raises {type(error).__name__}"
    return short_text(text)


def short_text(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= 60 else f"{text[:60]}…"


def _unplaced(found: Diagnostic) -> Diagnostic:
    """A diagnostic whose places are in other files than that of the user's code: its lines in words."""
    labels = (*found.labels[:1], *(label for label in found.labels[1:] if label.source is not None))
    files = (label.source.name if label.source is not None else "the model" for label in labels)
    lines = dict.fromkeys(f"line {label.span.line} of {file}" for label, file in zip(labels, files, strict=True))
    return Diagnostic(found.code, f"{found.message} ({', '.join(lines)})" if lines else found.message, (), found.help)


def _text(error: BaseException) -> str:
    try:
        text = str.__str__(str(error))
        return text if len(text) <= KEPT else shortened(text).rstrip("\n")
    except TimeIsUp:
        raise
    except BaseException as fault:
        return f"(its text can't be had: that raised {type(fault).__name__})"
