"""The grader's end of the conversation with a submission's process: starts it, asks, waits no longer than allowed, ends it.

Nothing that the child does may stop the grader: what it sends is read by a thread of its own, in bounds; after a wait that was too long the
process is ended with all that it started, and the next question starts another one.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import IO, Any

import numpy as np

from tpucc.diagnostics import printable
from tpucc.files import inside
from tpucc.labs.guest import BY_THE_CLOCK, DEEPEST, FRAMES, LOADING, LONGEST, WAITING
from tpucc.labs.jails import Cell, Jail, environment
from tpucc.labs.lab import Failed, Frame, Plain, failing
from tpucc.labs.messages import decoded
from tpucc.plugins.printed import KEPT, shortened

START = 60.0
"""Seconds in which a child must be there: it imports NumPy on a machine that may be busy."""
CALL = 10.0
"""Seconds of processor time of one call, unless a test gives another limit; `BY_THE_CLOCK` times as many pass at most."""
GRACE = 0.5
"""Seconds more, in which a child says where it was when its time was over."""
PATIENCE = 3
"""Calls that may take too long; after these, nothing is asked any more."""
BUDGET = 60.0
"""Seconds of processor time of a submission in all: of its calls, and of loading it again after those that end. Tests need a few. By the
clock, the grader waits `BY_THE_CLOCK` times as long for all of it."""
ROUNDED = 0.1
"""Seconds to which the rest of the budget is rounded."""
LOAD = "loading the file"
READS = 16
"""Reads of 64 KiB that find what was printed before an answer: no pipe holds more than 1 MiB, and others may go on printing."""
LINE = 100
"""Characters of a line of a submission that a message shows."""
NAME, MESSAGE, DEEP = 200, 2000, 10**6
"""Characters of a name and of a message of a child's, and calls that it may leave out: it may send as many as an answer has bytes."""


class Child:
    """A submission in a jail, as `lab.Submission` has it. To be closed."""

    def __init__(self, jail: Jail, cell: Cell, modules: Sequence[str]) -> None:
        self._jail, self._cell, self._modules = jail, cell, tuple(modules)
        self._process: _Process | None = None
        self._printed, self._lost = "", 0
        self._late, self._spent, self._waited = 0, 0.0, 0.0
        self._began = False
        self._seen = sorted(jail.folders(cell), key=len, reverse=True)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def printed(self) -> str:
        """What the submission has printed since this was asked, `shortened`."""
        self._keep()
        text = shortened(self._own(self._printed), self._lost)
        self._printed, self._lost = "", 0
        return text

    @property
    def spent(self) -> float:
        """Seconds of processor time that all calls have taken."""
        return self._spent

    def _keep(self) -> None:
        """Takes what the process has printed."""
        if self._process is not None:
            text, lost = self._process.printed()
            self._printed, self._lost = self._printed + text, self._lost + lost

    def defines(self) -> tuple[str, ...]:
        """The names of what can be called in the submission's main file. Raises `Failed`."""
        found = self.call("")
        with failing("result", "the answer"):
            return tuple(map(str, found)) if isinstance(found, list) else ()

    def text(self, name: str) -> str:
        """The text of a file of the submission."""
        with failing("result", name):
            return (self._cell.submission / name).read_text("utf-8")

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        """What the submission's function returns. Raises `Failed`; after a time-out or an end the next call has a fresh process."""
        limit = seconds or CALL
        if self._late >= PATIENCE:
            raise Failed("time", f"not asked: {PATIENCE} calls took too long")
        if self._spent >= BUDGET or self._waited >= BUDGET * BY_THE_CLOCK:
            most = f"{BUDGET:g} s of processor time, and {BUDGET * BY_THE_CLOCK:g} s by the clock"
            raise Failed("time", f"not asked: all calls together have {most}")
        clock = min(limit * BY_THE_CLOCK, max(0.1, round(BUDGET * BY_THE_CLOCK - self._waited, 1)))
        limit = min(limit, max(0.1, round(BUDGET - self._spent, 1)))
        request = pickle.dumps((function, arguments, limit, clock, WAITING))
        self.load()
        assert self._process is not None
        self._process.send(request)
        return _value(self._received(limit, clock, function))

    def load(self) -> None:
        """Starts a process that has the submission, where there is none. Raises `Failed` when its file can't be loaded."""
        if self._process is None:
            self._process = _Process(self._jail, self._cell, self._modules)
            left = max(0.1, round(BUDGET * BY_THE_CLOCK - self._waited, 1)) if self._began else START
            self._received(LOADING, min(START, left), LOAD)

    def close(self) -> None:
        """Ends the process and all that it started."""
        if self._process is not None:
            self._process.end()  # what it has printed is read to its end
            self._keep()
            self._process = None

    def _received(self, seconds: float, clock: float, doing: str) -> dict[str, Any]:
        """The answer of the process, which has so many seconds of processor time, and by the clock. Raises `Failed`."""
        assert self._process is not None
        start, answer = monotonic(), dict[str, Any]()
        try:
            answer = self._process.receive(clock + GRACE)
        except Failed as failure:
            self.close()
            raise self._unanswered(failure, doing, seconds, clock) from None
        finally:
            if self._began:  # the first process starts on a machine that may be busy
                self._count(monotonic() - start, seconds, answer.get("cpu") if answer.get("kind") != "time" else None)
            self._began = True
        if "value" in answer:
            return answer
        told = self._failure(answer)
        if told.kind == "time" or doing == LOAD:
            self.close()
        raise self._unanswered(told, doing, seconds, LOADING * BY_THE_CLOCK if doing == LOAD else clock) if told.kind == "time" else told

    def _count(self, waited: float, seconds: float, said: object) -> None:
        """Adds to what the submission has spent. It says itself how much processor time that was: no more than was waited is believed, and
        what was waited has a limit of its own. Of a call that took too long, its limit counts."""
        self._waited += waited
        self._spent += min(waited, max(0.0, said)) if isinstance(said, float) else min(waited, seconds)

    def _unanswered(self, failure: Failed, doing: str, seconds: float, clock: float) -> Failed:
        """A failure to answer, with what was asked."""
        message = failure.message
        if failure.kind == "time":
            self._late += PATIENCE if doing == LOAD else 1  # what doesn't load the first time isn't loaded again
            message = self._late_words(message, seconds, clock, " there" if failure.frames else "", doing)
        return Failed(failure.kind, f"{doing}: {message}", failure.frames, failure.left_out)

    def _late_words(self, which: str, seconds: float, clock: float, there: str, doing: str) -> str:
        """By which limit a call was ended: of processor time, by the clock, or of one that only waits."""
        if which == "idle":
            return f"waits and computes nothing for {WAITING:g} s, and was stopped{there}"
        limit = f"{seconds:g} s of processor time" if which == "processor" else f"{clock:g} s by the clock"
        used_up = self._spent > BUDGET - ROUNDED if which == "processor" else self._waited > BUDGET * BY_THE_CLOCK - ROUNDED
        most = f"{BUDGET:g} s of processor time" if which == "processor" else f"{BUDGET * BY_THE_CLOCK:g} s by the clock"
        if used_up and doing != LOAD:
            return f"was stopped{there}: the {most} of all calls together are used up"
        return f"takes longer than {limit}{f', and was stopped{there}' if there else ''}"

    def _failure(self, answer: dict[str, Any]) -> Failed:
        """Why there is no value, as the child says it, or why that can't be read."""
        try:
            with failing("result", "the answer"):
                return self._told(answer)
        except Failed as failure:
            return failure

    def _told(self, answer: dict[str, Any]) -> Failed:
        """Why there is no value, as the child says it: nothing of it is believed but its form."""
        frames, left_out, refused = (answer.get(key) for key in ("frames", "left_out", "refused"))
        found = [self._frame(entry) for entry in (frames if isinstance(frames, list) else [])[:FRAMES]]
        if refused is not None:
            found = [self._frame(refused)]
        kind, message = str(answer.get("kind"))[:NAME], self._own(str(answer.get("message"))[:MESSAGE])
        more = min(max(0, left_out), DEEP) if isinstance(left_out, int) else 0
        return Failed(kind, message, [frame for frame in found if frame], more)

    def _frame(self, entry: object) -> Frame | None:
        """A place of the submission: its file, line and function, or its file, line and column, where the compiler refused it."""
        match entry:
            case [str(file), int(line), str() | int() as where]:
                name = self._own(file)[:NAME]
                source = self._source(name, line)
                function, caret = (where, "") if isinstance(where, str) else ("", _caret(source, where))
                return Frame(printable(name), line, printable(function[:NAME]), printable(source.strip())[:LINE] + caret)
        return None

    def _source(self, name: str, line: int) -> str:
        """What stands in a line of a file of the submission, as the grader has it; nothing where there is no such line."""
        path = self._cell.submission / name
        try:
            lines = path.read_text("utf-8").splitlines() if inside(path, self._cell.submission) else []
        except (OSError, ValueError):
            return ""
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _own(self, text: str) -> str:
        """Text in which files have the names that they have in the student's folder: nothing of where a child sees them."""
        for folder in self._seen:
            text = text.replace(f"{folder}/", "").replace(folder, ".")
        return text


class _Process:
    """One process and the threads that read what it sends."""

    def __init__(self, jail: Jail, cell: Cell, modules: tuple[str, ...]) -> None:
        self._jail, self._cell = jail, cell
        config = {"modules": modules, "warm": False}
        self._process = subprocess.Popen(
            jail.command(cell, config),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=cell.folder,
            start_new_session=True,
        )
        self._answers: queue.Queue[bytes | Failed] = queue.Queue(maxsize=4)
        self._text, self._lost = bytearray(), 0
        self._reading = threading.Lock()
        self._over = False
        self._writing = threading.Thread()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read_answers, self._read_text)]
        for thread in self._threads:
            thread.start()

    def send(self, request: bytes) -> None:
        """Begins to write a request: a child that reads nothing holds up a thread only, and `receive` waits as long as allowed."""
        framed = len(request).to_bytes(8, "big") + request
        self._writing = threading.Thread(target=self._write, args=(framed,), daemon=True)
        self._writing.start()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(data)
        with suppress(OSError):  # it has ended: `receive` says so
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]

    def receive(self, seconds: float) -> dict[str, Any]:
        """The next answer, which counts only once the request is read. Raises `Failed`."""
        start = monotonic()
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise Failed("time", "") from None
        if self._writing.ident is not None:
            self._writing.join(max(0.0, start + seconds - monotonic()))
        if self._writing.is_alive():
            raise Failed("time", "")
        if isinstance(answer, Failed):
            raise answer
        return decoded(answer)

    def printed(self) -> tuple[str, int]:
        """What was printed since this was asked, and how many bytes more are not kept. A child prints before it answers: all that it did
        before its last answer is among it."""
        with self._reading:
            for _ in range(READS):
                if not (self._ready() and self._take()):
                    break
            text, lost = self._text.decode("utf-8", "replace"), self._lost
            self._text.clear()
            self._lost = 0
        return text, lost

    def end(self) -> None:
        """Ends the process, its group, and whatever else the jail holds. Raises `Left`."""
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        try:
            self._jail.end(self._cell)
        finally:
            self._close()

    def _close(self) -> None:
        """Ends the threads, and closes the pipes."""
        self._over = True
        for stream, thread in ((self._process.stdout, self._threads[0]), (self._process.stderr, self._threads[1])):
            thread.join(2)
            if stream and not thread.is_alive():  # without a jail, something that the child started may still hold it
                stream.close()
        if self._writing.ident is not None:
            self._writing.join(2)
        if self._process.stdin and not self._writing.is_alive():
            with suppress(OSError):
                self._process.stdin.close()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        answer: bytes | Failed = b""
        while not isinstance(answer, Failed) and not self._over:
            answer = self._frame(self._process.stdout)
            while not self._over:  # a child that answers without being asked waits
                with suppress(queue.Full):
                    self._answers.put(answer, timeout=0.2)
                    break

    def _frame(self, stream: IO[bytes]) -> bytes | Failed:
        """The bytes of the next answer: who asks for it decodes it, so that answers without a question take no more memory than these."""
        try:
            head = stream.read(8)
            size = int.from_bytes(head, "big")
            if len(head) < 8:
                return self._ended()
            if size > LONGEST:
                return Failed("result", "the answer is no answer of the grader's own reader")
            return stream.read(size)
        except Exception:
            return Failed("result", "the answer can't be read")

    def _ended(self) -> Failed:
        """How the process ended. The kernel's limit of processor time is a signal, and where a jail's own process hands it on, a status."""
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return Failed("ended", "the process ended without an answer")
        if os.name == "posix" and status in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
            return Failed("time", "processor")
        named = signal.Signals(-status).name if -status in set(signal.Signals) else -status
        return Failed("ended", f"the process ended without an answer ({f'signal {named}' if status < 0 else f'exit status {status}'})")

    def _read_text(self) -> None:
        assert self._process.stderr is not None
        with suppress(OSError, ValueError):
            going = True
            while going:
                if os.name == "posix":
                    select.select([self._process.stderr], [], [])
                    with self._reading:
                        going = not self._ready() or self._take()
                else:
                    going = self._take()

    def _ready(self) -> bool:
        """Whether something printed can be read, or no more will come. Windows can't ask that of a pipe."""
        stream = self._process.stderr
        return os.name == "posix" and stream is not None and not stream.closed and bool(select.select([stream], [], [], 0)[0])

    def _take(self) -> bool:
        """Reads what the process has printed; False at its end."""
        assert self._process.stderr is not None
        data = os.read(self._process.stderr.fileno(), 65536)
        kept = data[: max(0, 4 * KEPT - len(self._text))]
        self._text += kept
        self._lost += len(data) - len(kept)
        return bool(data)


def _caret(source: str, column: int) -> str:
    """A line with `^` below a column of a line of source, which is shown without its indentation; nothing where there is no such column."""
    at = min(column - 1, len(source)) - (len(source) - len(source.lstrip()))
    return f"\n{' ' * at}^" if 0 <= at <= LINE else ""


def _value(answer: dict[str, Any]) -> Plain:
    with failing("result", "the result"):
        return _read(answer["value"])


def _read(value: Any, depth: int = 0) -> Plain:
    """A result as `guest` packed it."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, list):
        return [_read(entry, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    if "graph" in value:
        return str(value["graph"])
    if "dict" in value:
        return {_read(key, depth + 1): _read(entry, depth + 1) for key, entry in value["dict"]}
    kind, shape = np.dtype(str(value["dtype"])), tuple(int(size) for size in value["shape"])
    if kind.kind not in "biuf":
        raise ValueError(f"an array of {kind}")
    return np.frombuffer(value["data"], kind).reshape(shape).copy()
