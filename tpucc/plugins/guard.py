"""Calling code that the user brought: whatever it does, the outcome is its result or a `PluginError` that names it.

It may raise anything, leave the interpreter, or never end. Only two things pass through: an interrupt from the keyboard, which ends
tpucc as ever, and want of memory, which is a limit. `os._exit` can't be caught in the same process: who runs code that is meant to do
harm runs it in a child.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from tpucc.diagnostics import Diagnostic, Error, Label, LimitError, PluginError, Source, Span
from tpucc.plugins.limits import TimeIsUp, interruptible, limited

P = ParamSpec("P")
R = TypeVar("R")

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
        return f"{Path(self.file).name}:{self.line}"

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """What `function` returns. Raises `PluginError` E0521 when it raises or exits, E0522 when it takes too long, and `LimitError` when
        there is no memory; a `TooLarge` is an answer, and passes through. What it prints goes to standard error, beside results."""
        try:
            with interruptible(), limited(self.seconds), redirect_stdout(sys.stderr):
                try:
                    return function(*args, **kwargs)
                except (TimeIsUp, MemoryError):
                    raise
                except BaseException as error:
                    if type(error) is PluginError:
                        raise
                    failure = self._raised(error)
        except TimeIsUp:
            help = "does one of its loops never end? --plugin-timeout gives it more seconds"
            raise self.error("E0522", f"takes longer than {self.seconds:g} s", help) from None
        except MemoryError:
            raise LimitError(Diagnostic("E0613", f"out of memory in {self.what}; smaller tensors need less")) from None
        raise failure

    def error(self, code: str, message: str, *help: str, line: int = 0, more: tuple[Diagnostic, ...] = ()) -> PluginError:
        """`message` continues what this is; it stands at `line` of its file, or at its own. `more` are diagnostics that say the rest."""
        linecache.checkcache(self.file)
        source, line = Source(Path(self.file).name, "".join(linecache.getlines(self.file))), line or self.line
        text = source.line(line)
        start = len(text) - len(text.lstrip()) + 1
        labels = (Label(Span(line, start, line, len(text) + 1)),) if text.strip() else ()
        head = Diagnostic(code, f"{self.what} {message}", labels, help)
        return PluginError((head, *map(_unplaced, more)), source)

    def _raised(self, error: BaseException) -> PluginError:
        """E0521 at the line of this file where the exception passed last. An error of tpucc's own brings its words."""
        name, line = type(error).__name__, self._line(error)
        if isinstance(error, SystemExit):
            return self.error("E0521", "raised SystemExit, which would end tpucc", "return a result, or raise an exception", line=line)
        more = tuple(d for d in getattr(error, "diagnostics", ()) if type(d) is Diagnostic) if isinstance(error, Error) else ()
        text = "" if more else _text(error)
        words = f"raised {name}: {text}" if text else f"raised {name}"
        failure = self.error("E0521", words, line=line, more=more)
        failure.__cause__ = error
        return failure

    def _line(self, error: BaseException) -> int:
        if isinstance(error, SyntaxError) and error.filename == self.file:
            return error.lineno or 0
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        return next((line for file, line in reversed(frames) if file == self.file), 0)


def guest(what: str, code: object, seconds: float = SECONDS) -> Guest:
    """A function of the user's, or an object that can be called."""
    compiled = getattr(code, "__code__", None) or getattr(vars(type(code)).get("__call__"), "__code__", None)
    return Guest(what, compiled.co_filename, compiled.co_firstlineno, seconds) if compiled else Guest(what, "", 0, seconds)


def short(value: object) -> str:
    """A value that the user's code returned, in a few words: its own text may fail, too."""
    try:
        text = repr(value)
    except BaseException as error:
        return f"a {type(value).__name__} whose text raises {type(error).__name__}"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _unplaced(found: Diagnostic) -> Diagnostic:
    """A diagnostic whose place is in another file than that of the user's code: its line in words."""
    where = f" (line {found.span.line} of the model)" if found.span else ""
    return Diagnostic(found.code, f"{found.message}{where}", (), found.help)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as fault:
        return f"(its text can't be had: that raised {type(fault).__name__})"
