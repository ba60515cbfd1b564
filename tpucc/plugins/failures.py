"""Calls of the user's code that have no result: what happened, in words, and at which line of the user's.

A `Failed` is the one verdict for passes, stages and labs' submissions, whether the code ran in this process or in a child.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

from tpucc.diagnostics import Diagnostic, Error, reason
from tpucc.plugins.printed import shortened

OWN = ("time", "memory", "ended", "result", "wrong", "file")
"""Kinds of failures that are no exceptions: the call took too long or too much memory, its process ended, its result has another form than
was asked for or a wrong value, a file is wrong."""
FRAMES = 10
"""Calls that are told of an exception: as many of the first as of the last."""
NO_MEMORY = "takes more memory than there is"


@dataclass(frozen=True, slots=True)
class Frame:
    """A place of the user's at which the code was: the file as the user knows it, the line, the function, and what stands there.

    A place that Python can't read has no function. Its `column` is 1 or more, and a caret stands under the line's text.
    """

    file: str
    line: int
    function: str = ""
    source: str = ""
    column: int = 0

    def __str__(self) -> str:
        if not self.function:
            return "\n".join(f"    {line}" for line in self.source.splitlines())
        return f"  {self.file}:{self.line} in {self.function}{f': {self.source}' if self.source else ''}"


class Failed(Exception):
    """A call of the user's code that has no result.

    `kind` is the exception's class name, or one of `OWN`. `frames` are the user's own places in the calls that led there, the last one
    where it happened, and `left_out` says how many in their middle are not among them. `found` are the diagnostics of an error of tpucc's
    that was raised, without their places. For a result that doesn't fit, `code` is the error's code, and `help` says what to do.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        frames: Sequence[Frame] = (),
        left_out: int = 0,
        *,
        found: Sequence[Diagnostic] = (),
        code: str = "E0523",
        help: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.frames, self.left_out = kind, message, tuple(frames), left_out
        self.found, self.code, self.help = tuple(found), code, tuple(help)

    @property
    def raised(self) -> str:
        """What was raised and its message; of a failure that is no exception, its message."""
        return self.message if self.kind in OWN else f"{self.kind}: {self.message}" if self.message else self.kind

    @property
    def words(self) -> str:
        """The place, what was raised and its message; below, the calls that led there."""
        last = self.frames[-1] if self.frames else None
        where = f"{last.file}:{last.line}: " if last else ""
        calls = [str(frame) for frame in self.frames]
        if self.left_out:
            calls.insert(len(calls) // 2, f"  … {self.left_out:,} more calls")
        return "\n".join(filter(None, (f"{where}{self.raised}", *calls)))


class Unfit(Exception):
    """A result of the user's code that can't be taken: the message says what it is and what was expected, after the name of the code.
    `found` are diagnostics that say the rest."""

    def __init__(self, message: str, *help: str, code: str = "E0523", found: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.message, self.help, self.code, self.found = message, help, code, tuple(found)


def failed(error: BaseException, is_own: Callable[[str], bool]) -> Failed:
    """The failure that an exception is. `is_own` says of a file's name whether it is the user's. A `Failed` stays what it is."""
    if isinstance(error, Failed):
        return error
    if isinstance(error, Unfit):
        return Failed("result", error.message, code=error.code, help=error.help, found=tuple(map(unplaced, error.found)))
    trace: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)  # a class of the user's may have another
    frames, left_out = own_frames(traceback.walk_tb(trace), is_own)
    if isinstance(error, MemoryError):
        return Failed("memory", NO_MEMORY, frames, left_out)
    name = type(error).__name__[:100]
    kind = f"class {name}" if name in OWN else name
    if isinstance(error, SyntaxError) and is_own(str(error.filename)) and type(error.lineno) is int:
        column = error.offset if type(error.offset) is int else 0
        return Failed(kind, str(error.msg), [Frame(str(error.filename), error.lineno, column=column)])
    found = tuple(unplaced(each) for each in getattr(error, "diagnostics", ()) if type(each) is Diagnostic)
    return Failed(kind, _text(error), frames, left_out, found=found if isinstance(error, Error) else ())


def own_frames(calls: Iterable[tuple[FrameType, int]], is_own: Callable[[str], bool], *, outwards: bool = False) -> tuple[list[Frame], int]:
    """Those of the calls that are in the user's files, the outermost first, and how many are left out of their middle."""
    found = [Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in calls if is_own(frame.f_code.co_filename)]
    own = found[::-1] if outwards else found
    if len(own) <= FRAMES:
        return own, 0
    return own[: FRAMES // 2] + own[-FRAMES // 2 :], len(own) - FRAMES


def failure_behind(error: BaseException | None) -> Failed | None:
    """The failure of the user's code that made tpucc raise an error, where there is one: its cause, or the cause's, and so on."""
    while error is not None and not isinstance(error, Failed):
        error = error.__cause__ or error.__context__
    return error


@contextmanager
def failing(kind: str, what: str) -> Iterator[None]:
    """Reads what the user's code made, in the body: whatever goes wrong is that code's failure. Raises `Failed`."""
    try:
        yield
    except Failed:
        raise
    except OSError as error:
        name = Path(error.filename).name if error.filename else what
        raise Failed(kind, f"{name} can't be read: {reason(error)}") from None
    except Exception as error:
        raise Failed(kind, f"{what} can't be read: {str(error) or type(error).__name__}") from None


def unplaced(found: Diagnostic) -> Diagnostic:
    """A diagnostic whose places are in other files than the user's code: its lines in words."""
    labels = (*found.labels[:1], *(label for label in found.labels[1:] if label.source is not None))
    files = (label.source.name if label.source is not None else "the model" for label in labels)
    lines = dict.fromkeys(f"line {label.span.line} of {file}" for label, file in zip(labels, files, strict=True))
    return Diagnostic(found.code, f"{found.message} ({', '.join(lines)})" if lines else found.message, (), found.help)


def _text(error: BaseException) -> str:
    try:
        return shortened(str.__str__(str(error))).rstrip("\n")
    except BaseException as fault:
        return f"(its text can't be had: that raised {type(fault).__name__})"
