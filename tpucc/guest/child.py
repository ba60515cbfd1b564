"""Our end of the conversation with a child: starts it, asks, waits no longer than allowed, ends it.

Nothing that the child does may stop us: what it sends is read by a thread of its own, in bounds; after a wait that was too long the process
is ended with all that it started, and the next question starts another one.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from tpucc.diagnostics import Diagnostic, printable
from tpucc.files import inside
from tpucc.guest.jails import OWN, OWN_MOST, Cell, Jail
from tpucc.guest.limits import GRACE, Duration
from tpucc.guest.pipes import Dumped, Pipes
from tpucc.guest.serving import Request
from tpucc.guest.values import MOST, Plain, decoded, unpacked
from tpucc.plugins.failures import FRAMES, Failed, Frame, failing
from tpucc.plugins.printed import KEPT

LINE = 100
"""Characters of a line of the user's that a message shows."""
NAME, MESSAGE, DEEP = 200, 2000, 10**6
"""Characters of a name and of a message of somebody else's code, and calls that it may leave out: it may send as many as an answer has
bytes."""
DIAGNOSTICS = 20
"""Of an error of tpucc's that was raised in a child, so many diagnostics are read."""
_PLACE = re.compile(r'File "([^"\n]*)", line (\d+) in (\S*)')


class _Said(msgspec.Struct):
    """Why there is no value, as a child says it (`serving._answer_of`)."""

    kind: str
    message: str
    frames: list[tuple[str, int, str | int]] = []
    left_out: int = 0
    found: list[tuple[str, str, list[str]]] = []
    code: str = "E0523"
    help: list[str] = []


@dataclass
class Answer:
    """What a question has come to: its value or its failure, the seconds of processor time that the child says it took, or None where it
    says nothing, and the seconds by the clock. `limit` says of a call that took too long which limit is over: `processor`, `clock` or, of a
    call that only waits, `idle`."""

    value: Plain = None
    failure: Failed | None = None
    processor: float | None = None
    clock: float = 0.0
    limit: str = ""


class Child:
    """A process in a jail. To be closed. `told` gets what it prints as soon as it does; else that is kept for `printed`."""

    def __init__(self, jail: Jail, cell: Cell, modules: Sequence[str] = (), told: Callable[[str], object] | None = None) -> None:
        self._jail, self._cell, self._modules, self._told = jail, cell, tuple(modules), told
        self._process: Pipes | None = None
        self._printed, self._lost = "", 0
        self._seen = sorted(jail.folders(cell), key=len, reverse=True)
        self._values = OWN_MOST if jail is OWN else MOST
        self._message = KEPT + NAME if jail is OWN else MESSAGE

    @property
    def is_there(self) -> bool:
        """Whether the process has been started, and hasn't been ended."""
        return self._process is not None

    def printed(self) -> tuple[str, int]:
        """What the child has printed since this was asked, and how many bytes more are not kept."""
        self._keep()
        found = self._own(self._printed), self._lost
        self._printed, self._lost = "", 0
        return found

    def ask(self, request: Request) -> Answer:
        """Asks, and waits for the answer."""
        self.begin(request)
        return self.answer(request.most)

    def begin(self, request: Request) -> None:
        """Asks. Starts the process where there is none."""
        data = pickle.dumps(request)
        self._process = self._process or Pipes(self._jail, self._cell, self._modules, self._told)
        self._process.send(data)

    def answer(self, most: Duration) -> Answer:
        """Waits for the answer of a process that has been asked. A process that took too long is ended, and so is one of which no frame can
        be read: what comes after it has no beginning."""
        start, answer, received = monotonic(), Answer(), False
        try:
            if self._process is None:
                raise Failed("ended", "was ended")
            data = self._process.receive(most.clock + GRACE)
            received = True
            self._take(decoded(data, self._values), answer)
        except Failed as failure:
            answer.failure = failure
        answer.clock = monotonic() - start
        if answer.failure and (not received or answer.failure.kind in ("time", "ended")):
            answer.failure, answer.limit = self._ended(answer.failure, most)
            self.close()
        return answer

    def close(self) -> None:
        """Ends the process and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            process.end()  # what it has printed is read to its end
            self._keep(process)

    def _keep(self, ended: Pipes | None = None) -> None:
        """Takes what the process has printed."""
        if process := ended or self._process:
            text, lost = process.printed()
            self._printed, self._lost = self._printed + text, self._lost + lost

    def _take(self, found: dict[str, Any], answer: Answer) -> None:
        """Reads what the child says into an answer. Raises `Failed` where it says why there is no value."""
        answer.processor = found["cpu"] if isinstance(found.get("cpu"), float) else None
        with failing("result", "gave a result that" if "value" in found else "gave an answer that"):
            if "value" not in found:
                raise self._failure(found)
            answer.value = unpacked(found["value"])

    def _ended(self, failure: Failed, most: Duration) -> tuple[Failed, str]:
        """How a process has ended, or has to, in words, and which limit was over."""
        text, frames = failure.message, failure.frames
        if isinstance(failure, Dumped):
            places = [self._frame(name, int(line), function) for name, line, function in _PLACE.findall(failure.text)]
            frames = tuple(frame for frame in reversed(places) if frame.source or self._jail is OWN)[-FRAMES:]
        if failure.kind != "time":
            return Failed(failure.kind, text, frames, failure.left_out), ""
        limit = text if text in ("processor", "idle") else "clock"
        return Failed("time", late_words(limit, most, there=bool(frames)), frames, failure.left_out), limit

    def _failure(self, answer: dict[str, Any]) -> Failed:
        """Why there is no value, as the child says it: nothing of it is believed but its form."""
        said = msgspec.convert(answer, _Said)
        frames, more = [self._frame(*place) for place in said.frames[:FRAMES]], min(max(0, said.left_out), DEEP)
        found = [Diagnostic(code[:NAME], text[:MESSAGE], (), tuple(help)) for code, text, help in said.found[:DIAGNOSTICS]]
        message = self._own(said.message[: self._message])
        return Failed(said.kind[:NAME], message, frames, more, found=found, code=said.code[:NAME], help=said.help)

    def _frame(self, file: str, line: int, where: str | int) -> Frame:
        """A place of the user's: its file, line and function, or its file, line and column, where Python can't read it."""
        name = self._own(file)[-NAME:]
        source = self._source(name, line)
        function, column = (where, 0) if isinstance(where, str) else ("", where)
        caret = _caret(source, column) if column else ""
        return Frame(printable(name), line, printable(function[:NAME]), printable(source.strip())[:LINE] + caret, column)

    def _source(self, name: str, line: int) -> str:
        """What stands in a line of a file of the user's, as we have it; nothing where there is no such line."""
        path = self._cell.submission / name
        try:
            lines = path.read_text("utf-8").splitlines() if inside(path, self._cell.submission) else []
        except (OSError, ValueError):
            return ""
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _own(self, text: str) -> str:
        """Text in which files have the names that they have in the user's folder: nothing of where a child sees them."""
        for folder in self._seen:
            text = text.replace(f"{folder}/", "").replace(folder, ".")
        return text


def late_words(limit: str, most: Duration, *, there: bool) -> str:
    """What is said of a call that took too long. `there` says that the place where it was is known."""
    if limit == "idle":
        return f"waits and computes nothing for {most.waiting:g} s, and was stopped{' there' if there else ''}"
    words = f"{most.processor:g} s of processor time" if limit == "processor" else f"{most.clock:g} s by the clock"
    return f"takes longer than {words}{', and was stopped there' if there else ''}"


def _caret(source: str, column: int) -> str:
    """A line with `^` below a column of a line of source, which is shown without its indentation; nothing where there is no such column."""
    at = min(column - 1, len(source)) - (len(source) - len(source.lstrip()))
    return f"\n{' ' * at}^" if 0 <= at <= LINE else ""
